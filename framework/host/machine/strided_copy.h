// Copies between layouts of host memory: what the host does itself where a backend or a caller wants another layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tenon::host {

/// Copies elements of `element_bytes` bytes (1, 2, 4, 8 or 16). Strides are in elements, may be negative or 0 on the source side;
/// the destination's elements must be distinct. Runs on the process's threads when there is much to copy.
void strided_copy(std::byte* to, std::span<const std::int64_t> to_strides, const std::byte* from, std::span<const std::int64_t> from_strides,
                  std::span<const std::int64_t> sizes, std::size_t element_bytes);

/// Bytes from the lowest to past the highest element of a layout in memory; 0 for an empty tensor. Throws (out_of_memory) when 63 bits do
/// not hold them.
std::size_t extent_bytes(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides, std::size_t element_bytes);

/// How many of them negative strides put before the first element. For layouts whose extent can be counted.
std::size_t bytes_before_first(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides, std::size_t element_bytes);

/// True when two different index tuples may address one element (a stride 0, or strides that interleave).
bool may_overlap_itself(std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides);

}  // namespace tenon::host
