// What kernels that work along one dimension share: lanes read as float64 or int64, and single elements written.
#pragma once

#include <cstring>
#include <numeric>

#include "core/ops/notation/family.h"
#include "core/ops/reference/scalar_kernels.h"

namespace tenon::ops {

/// The view with one dimension of size 1 more, for 0-d tensors.
inline TensorView with_dimension(TensorView x) {
  x.shape.push_back(1);
  x.strides.push_back(0);
  return x;
}

inline std::int64_t lane_offset(const TensorView& x, std::size_t dim, std::span<const std::int64_t> at, std::int64_t i) {
  if (x.shape.empty()) return 0;
  std::int64_t offset = i * x.strides[dim];
  for (std::size_t d = 0; d < x.shape.size(); ++d)
    if (d != dim) offset += at[d] * x.strides[d];
  return offset;
}

/// Elements of a lane, and from one to the next in memory.
inline std::int64_t lane_size(const TensorView& x, std::size_t dim) { return x.shape.empty() ? 1 : x.shape[dim]; }
inline std::int64_t lane_step(const TensorView& x, std::size_t dim) { return x.shape.empty() ? 0 : x.strides[dim]; }

/// Element i of the lane at `at` of an int64 tensor.
inline std::int64_t& integer_element(const TensorView& x, std::size_t dim, std::span<const std::int64_t> at, std::int64_t i) {
  return static_cast<std::int64_t*>(x.data)[lane_offset(x, dim, at, i)];
}

/// Copies an element between lanes at the same place of two tensors. Floats may be wider in one of them.
inline void copy_element(const TensorView& from, std::size_t dim, std::span<const std::int64_t> at, std::int64_t i, const TensorView& to, std::int64_t k) {
  if (from.dtype != to.dtype) {
    const std::int64_t source = lane_offset(from, dim, at, i), target = lane_offset(to, dim, at, k);
    double value = 0;
    reference::gather(from.dtype, from.data, &source, DType::f64, &value, 1);
    reference::scatter(DType::f64, &value, to.dtype, to.data, &target, 1);
    return;
  }
  const auto size = static_cast<std::int64_t>(size_of(from.dtype));
  std::memcpy(static_cast<std::byte*>(to.data) + lane_offset(to, dim, at, k) * size,
              static_cast<const std::byte*>(from.data) + lane_offset(from, dim, at, i) * size, static_cast<std::size_t>(size));
}

/// Copies the elements at `places` of a lane to the front of the lane at the same place of another tensor.
inline void copy_elements(const TensorView& from, std::size_t dim, std::span<const std::int64_t> at, std::span<const std::int64_t> places, const TensorView& to) {
  const auto copy = [&]<class T>(T) {
    const T* source = static_cast<const T*>(from.data) + lane_offset(from, dim, at, 0);
    T* target = static_cast<T*>(to.data) + lane_offset(to, dim, at, 0);
    const std::int64_t step = lane_step(from, dim), next = lane_step(to, dim);
    for (const std::int64_t place : places) {
      *target = source[place * step];
      target += next;
    }
  };
  if (from.dtype != to.dtype || size_of(from.dtype) > 8) {
    for (std::size_t k = 0; k < places.size(); ++k) copy_element(from, dim, at, places[k], to, static_cast<std::int64_t>(k));
    return;
  }
  switch (size_of(from.dtype)) {
    case 1: return copy(std::uint8_t{});
    case 2: return copy(std::uint16_t{});
    case 4: return copy(std::uint32_t{});
    default: return copy(std::uint64_t{});
  }
}

/// Calls `visit(at)` for the place of every lane along `dim`, in row-major order of the other dimensions, with 0 for `dim`. A 0-d tensor
/// is one lane of one element.
template <class Visit>
void each_place(const TensorView& x, std::size_t dim, Visit visit) {
  const std::size_t rank = x.shape.size();
  std::int64_t lanes = 1;
  for (std::size_t d = 0; d < rank; ++d)
    if (d != dim) lanes *= x.shape[d];
  std::vector<std::int64_t> at(rank, 0);
  for (; lanes > 0; --lanes) {
    visit(std::span<const std::int64_t>(at));
    for (std::size_t d = rank; d-- > 0;) {
      if (d == dim) continue;
      if (++at[d] < x.shape[d]) break;
      at[d] = 0;
    }
  }
}

/// Calls `visit(lane, at)` for every lane along `dim` and its place. K is double (exact for every float) or int64 (exact for integers and
/// bools).
template <class K, class Visit>
void each_lane(const TensorView& x, std::size_t dim, Visit visit) {
  const auto bytes = static_cast<std::int64_t>(size_of(x.dtype));
  std::vector<K> lane(static_cast<std::size_t>(lane_size(x, dim)));
  each_place(x, dim, [&](std::span<const std::int64_t> at) {
    const std::byte* first = static_cast<const std::byte*>(x.data) + lane_offset(x, dim, at, 0) * bytes;
    reference::convert_strided(x.dtype, first, x.shape.empty() ? 1 : x.strides[dim], std::is_same_v<K, double> ? DType::f64 : DType::i64, lane.data(), 1, lane.size());
    visit(std::span<const K>(lane), at);
  });
}

}  // namespace tenon::ops
