// The explicit type of every value.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/base/dtype.h"
#include "core/ir/device.h"
#include "core/ir/dim.h"

namespace tenon::ir {

/// A tensor, or a token that orders effects (random numbers, opaque calls). Strides are in elements; without strides the
/// layout is row-major and contiguous.
struct Type {
  enum class Kind : std::uint8_t { tensor, token };

  Kind kind = Kind::tensor;
  DType dtype = DType::f32;
  Shape shape;
  std::optional<Shape> strides;
  Device device;

  static Type tensor(DType dtype, Shape shape, Device device = {}) { return {Kind::tensor, dtype, std::move(shape), {}, device}; }
  static Type token() { return {Kind::token, DType::b8, {}, {}, {}}; }

  bool is_tensor() const { return kind == Kind::tensor; }
  /// Whether it may stand beside tensors of any device: a tensor of the host without dimensions.
  bool is_host_scalar() const { return is_tensor() && shape.empty() && device.is_host(); }
  std::size_t rank() const { return shape.size(); }
  Dim element_count() const { return product(shape); }
  /// The strides, computed where the layout is row-major.
  Shape resolved_strides() const { return strides ? *strides : row_major_strides(shape); }

  friend bool operator==(const Type&, const Type&) = default;
};

}  // namespace tenon::ir
