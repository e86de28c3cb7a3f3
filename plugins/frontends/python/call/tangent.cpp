#include "python/call/tangent.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "python/call/segment_node.h"
#include "python/library/torch_layout.h"
#include "python/library/torch_library.h"
#include "python/results/torch_results.h"

namespace tenon::python {
namespace {

std::span<const std::int64_t> sizes_of(void* tensor) { return {layout::sizes(tensor), layout::rank(tensor)}; }

std::size_t count_of(std::span<const std::int64_t> sizes) {
  std::size_t count = 1;
  for (std::int64_t size : sizes) count *= static_cast<std::size_t>(size);
  return count;
}

/// Whether elements lie with those strides; strides of dimensions without a second element do not count.
bool lies_with(void* tensor, auto stride_of) {
  for (std::size_t d = layout::rank(tensor); d-- > 0;)
    if (const std::int64_t want = stride_of(d); layout::sizes(tensor)[d] > 1 && layout::strides(tensor)[d] != want) return false;
  return true;
}

bool is_row_major_tensor(void* tensor) {
  std::int64_t step = 1;
  return lies_with(tensor, [&](std::size_t d) { return std::exchange(step, step * layout::sizes(tensor)[d]); });
}

void copy_row_major(void* to, void* tensor, std::size_t item) {
  const std::size_t rank = layout::rank(tensor), count = count_of(sizes_of(tensor));
  const auto* from = static_cast<const char*>(layout::data(tensor, item));
  auto* next = static_cast<char*>(to);
  if (count == 0) return;
  std::vector<std::int64_t> position(rank, 0);
  const std::int64_t *sizes = layout::sizes(tensor), *strides = layout::strides(tensor);
  const std::size_t row = rank ? static_cast<std::size_t>(sizes[rank - 1]) : 1;
  const std::int64_t step = rank ? strides[rank - 1] * static_cast<std::int64_t>(item) : 0;
  for (std::size_t done = 0; done < count; done += row) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d + 1 < rank; ++d) offset += position[d] * strides[d];
    const char* element = from + offset * static_cast<std::int64_t>(item);
    if (step == static_cast<std::int64_t>(item)) std::memcpy(next, element, row * item);
    else
      for (std::size_t i = 0; i < row; ++i) std::memcpy(next + i * item, element + static_cast<std::int64_t>(i) * step, item);
    next += row * item;
    for (std::size_t d = rank - 1; rank > 1 && d-- > 0;) {
      if (++position[d] < sizes[d]) break;
      position[d] = 0;
    }
  }
}

}  // namespace

void Tangent::copy_in_order(DType dtype) {
  std::vector<std::int64_t> strides(layout::rank(tensor));
  std::int64_t step = 1;
  for (std::size_t d = strides.size(); d-- > 0;) strides[d] = std::exchange(step, step * std::max<std::int64_t>(layout::sizes(tensor)[d], 1));
  void* data = nullptr;
  copy = new_plain_tensor(*known_torch_library(), dtype, sizes_of(tensor), strides, data);
  copy_row_major(data, tensor, size_of(dtype));
  layout = TangentLayout::row_major;
  ++node_counts().copied_gradients;
}

Tangent tangent_of(void* tensor, const TensorOutput& result) {
  Tangent made{.layout = TangentLayout::none, .tensor = tensor, .copy = {}};
  if (!tensor) return made;
  if (is_row_major_tensor(tensor)) made.layout = TangentLayout::row_major;
  else if (lies_with(tensor, [](std::size_t) { return 0; })) made.layout = TangentLayout::one_element;
  else if (result.varying_shape.empty() && lies_with(tensor, [&](std::size_t d) { return result.strides[d]; })) made.layout = TangentLayout::as_result;
  else made.copy_in_order(result.dtype);
  return made;
}

}  // namespace tenon::python
