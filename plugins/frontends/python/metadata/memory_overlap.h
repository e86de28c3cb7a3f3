// Which strided tensors share elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tenon::python {

/// A strided tensor in memory: its first element, and extents in elements.
struct ElementPlaces {
  const void* first = nullptr;
  std::size_t item_bytes = 1;
  std::span<const std::int64_t> shape, strides;
};

/// The bytes from the lowest element on and before the end of the highest one; none where there is no element.
struct ByteRange {
  const char *low, *high;
};
ByteRange range_of(const ElementPlaces& tensor) noexcept;

/// Whether two elements of one tensor may be in the same place: an expanded dimension, overlapping windows. May be wrong only in saying yes.
bool may_overlap_itself(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides);

/// Whether two tensors share memory. Exact for what numpy.shares_memory can decide with little work; otherwise it says yes. Touches no
/// element. The GIL must be held; leaves no exception set.
bool may_share_memory(const ElementPlaces& a, const ElementPlaces& b) noexcept;

}  // namespace tenon::python
