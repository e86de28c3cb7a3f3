// The layout that most tensors have.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tenon {

/// True when the strides are those of a row-major tensor without gaps; dimensions of size 1, and empty tensors, may have any.
inline bool is_row_major(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides) {
  if (std::ranges::find(sizes, 0) != sizes.end()) return true;
  std::int64_t expected = 1;
  for (std::size_t d = sizes.size(); d-- > 0; expected *= sizes[d])
    if (sizes[d] != 1 && strides[d] != expected) return false;
  return true;
}

/// The strides of a row-major tensor of such sizes, in elements; a dimension of size 0 counts as 1, as in ATen. Throws (out_of_memory) where
/// 63 bits do not count the elements.
std::vector<std::int64_t> row_major_strides(std::span<const std::int64_t> sizes);

/// Copies the elements of a tensor, each of `element_bytes` bytes, to a row-major one. Strides are in elements, and may be 0 or negative. On one
/// thread: for what is small, or copied once.
void copy_to_row_major(void* to, const void* from, std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides, std::size_t element_bytes);

}  // namespace tenon
