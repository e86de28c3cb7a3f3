#include "python/call/gradients/tangent.h"

#include "core/memory/row_major.h"
#include "python/call/gradients/segment_node.h"
#include "python/library/torch_layout.h"
#include "python/library/torch_library.h"
#include "python/results/torch_results.h"

namespace tenon::python {
namespace {

std::span<const std::int64_t> sizes_of(void* tensor) { return {layout::sizes(tensor), layout::rank(tensor)}; }
std::span<const std::int64_t> strides_of(void* tensor) { return {layout::strides(tensor), layout::rank(tensor)}; }

/// Whether elements lie with those strides; strides of dimensions without a second element do not count.
bool lies_with(void* tensor, auto stride_of) {
  for (std::size_t d = layout::rank(tensor); d-- > 0;)
    if (const std::int64_t want = stride_of(d); layout::sizes(tensor)[d] > 1 && layout::strides(tensor)[d] != want) return false;
  return true;
}

}  // namespace

void Tangent::copy_in_order(DType dtype) {
  void* data = nullptr;
  copy = new_plain_tensor(*known_torch_library(), dtype, sizes_of(tensor), row_major_strides(sizes_of(tensor)), data);
  const std::size_t item = size_of(dtype);
  copy_to_row_major(data, layout::data(tensor, item), sizes_of(tensor), strides_of(tensor), item);
  layout = TangentLayout::row_major;
  ++node_counts().copied_gradients;
}

Tangent tangent_of(void* tensor, const TensorOutput& result) {
  Tangent made{.layout = TangentLayout::none, .tensor = tensor, .copy = {}};
  if (!tensor) return made;
  if (is_row_major(sizes_of(tensor), strides_of(tensor))) made.layout = TangentLayout::row_major;
  else if (lies_with(tensor, [](std::size_t) { return 0; })) made.layout = TangentLayout::one_element;
  else if (result.varying_shape.empty() && lies_with(tensor, [&](std::size_t d) { return result.strides[d]; })) made.layout = TangentLayout::as_result;
  else made.copy_in_order(result.dtype);
  return made;
}

}  // namespace tenon::python
