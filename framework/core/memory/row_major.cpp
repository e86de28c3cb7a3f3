#include "core/memory/row_major.h"

#include <cstring>
#include <functional>
#include <numeric>

#include "core/base/error.h"

namespace tenon {

std::vector<std::int64_t> row_major_strides(std::span<const std::int64_t> sizes) {
  std::vector<std::int64_t> strides(sizes.size());
  std::int64_t stride = 1;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    if (!__builtin_mul_overflow(stride, std::max<std::int64_t>(sizes[i], 1), &stride)) continue;
    if (std::ranges::find(sizes, 0) == sizes.end()) throw Exception(Code::out_of_memory, "the elements of a tensor of that size cannot be counted");
    stride = 1;  // nothing is there to be found by it
  }
  return strides;
}

void copy_to_row_major(void* to, const void* from, std::span<const std::int64_t> sizes, std::span<const std::int64_t> strides, std::size_t element_bytes) {
  if (std::ranges::find(sizes, 0) != sizes.end()) return;
  if (is_row_major(sizes, strides)) {
    const std::int64_t count = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
    std::memcpy(to, from, static_cast<std::size_t>(count) * element_bytes);
    return;
  }
  const std::size_t outer = sizes.size() - 1, row = static_cast<std::size_t>(sizes[outer]);
  const auto bytes = static_cast<std::int64_t>(element_bytes), step = strides[outer] * bytes;
  auto* next = static_cast<char*>(to);
  const auto* first = static_cast<const char*>(from);
  std::vector<std::int64_t> position(outer, 0);
  for (;;) {
    for (std::size_t i = 0; i < row; ++i) std::memcpy(next + i * element_bytes, first + static_cast<std::int64_t>(i) * step, element_bytes);
    next += row * element_bytes;
    std::size_t d = outer;
    for (; d > 0; --d) {
      first += strides[d - 1] * bytes;
      if (++position[d - 1] < sizes[d - 1]) break;
      first -= strides[d - 1] * bytes * sizes[d - 1];
      position[d - 1] = 0;
    }
    if (d == 0) return;
  }
}

}  // namespace tenon
