#include "core/memory/row_major.h"

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

}  // namespace tenon
