// Where the elements of an input are in the present call.
#pragma once

#include <Python.h>

#include <array>
#include <cstdint>
#include <optional>

#include "python/metadata/memory_overlap.h"
#include "python/metadata/tensor_spec.h"

namespace tenon::python {

/// Of an object that matches its spec: what varies of the metadata is read from it.
class PresentPlaces {
 public:
  PresentPlaces(const TensorSpec& spec, PyObject* object) noexcept : places_{data_of(spec, object, nullptr), size_of(spec.dtype), spec.shape, spec.strides} {
    if (!spec.varies()) return;
    for (std::uint32_t d = 0; d < spec.shape.size(); ++d) known_ &= read_extent(object, d, shape_[d]) && read_stride(object, d, strides_[d]);
    places_.shape = {shape_.data(), spec.shape.size()};
    places_.strides = {strides_.data(), spec.shape.size()};
  }
  PresentPlaces(const PresentPlaces&) = delete;

  /// Nothing when they could not be read.
  std::optional<ByteRange> range() const noexcept { return known_ ? std::optional(range_of(places_)) : std::nullopt; }
  bool may_share_with(const PresentPlaces& other) const noexcept { return !known_ || !other.known_ || may_share_memory(places_, other.places_); }

 private:
  std::array<std::int64_t, 32> shape_, strides_;  // a tensor of more dimensions does not vary
  ElementPlaces places_;
  bool known_ = true;
};

}  // namespace tenon::python
