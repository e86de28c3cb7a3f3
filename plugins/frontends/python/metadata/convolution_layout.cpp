#include "python/metadata/convolution_layout.h"

#include "core/ops/infer.h"
#include "core/ops/op.h"
#include "python/objects/graph_break.h"

namespace tenon::python {
namespace {

/// Whether the result of a convolution in three dimensions has the memory format of its operands: where torch gives it to oneDNN, as it does
/// on several threads (aten/src/ATen/native/Convolution.cpp, use_mkldnn). For half floats the processor decides.
bool keeps_memory_format(const ir::Graph& graph, const ir::Node& node, DType dtype, std::span<const Operand> operands) {
  constexpr std::int64_t kManyElements = 20480, kSmallKernel = 3;
  if (size_of(dtype) == 2) throw GraphBreak("a convolution of half floats with channels last in three dimensions");
  if (dtype != DType::f32) return false;
  const ops::OpQuery q(graph, node.operands, node.attributes);
  const std::int64_t groups = q.constant_integer("groups", 1);
  const std::span x = operands[0].shape, weight = operands[1].shape;
  if (q.flag("transposed")) {
    const auto behind = q.integers("output_padding"), stride = q.integers("stride");
    for (std::size_t d = 0; d < std::min(behind.size(), stride.size()); ++d)
      if (behind[d].constant() >= stride[d].constant()) return false;
  }
  const std::size_t last = weight.size() - 1;
  return groups > 1 || (weight[last] > kSmallKernel && weight[last - 1] > kSmallKernel) || x[0] > 1 || x[0] * x[1] * x[2] * x[3] > kManyElements;
}

/// The strides of a convolution's result in one dimension: torch computes it in two, of which the first has size 1, from an input that it
/// makes row-major, and a weight as it is. An input that is row-major keeps the strides of dimensions of size 1, which may resemble channels last.
Extents strides_over_one_dimension(std::span<const std::int64_t> shape, std::span<const Operand> operands) {
  struct Lifted {
    Extents shape, strides;
  };
  const auto lift = [](std::span<const std::int64_t> flat, Extents strides) {
    Extents lifted(flat.begin(), flat.end());
    strides.insert(strides.begin() + 2, flat[2] * strides[2]);
    lifted.insert(lifted.begin() + 2, 1);
    return Lifted{std::move(lifted), std::move(strides)};
  };
  std::vector<Lifted> lifted;
  for (const Operand& o : operands) {
    const bool as_it_is = !lifted.empty() || is_row_major(o.shape, o.strides);
    if (o.shape.size() == 3) lifted.push_back(lift(o.shape, as_it_is ? Extents(o.strides.begin(), o.strides.end()) : row_major(o.shape)));
  }
  std::vector<Operand> in_two;
  for (const Lifted& o : lifted) in_two.push_back({o.shape, o.strides});
  Extents strides = memory_format_strides(lift(shape, row_major(shape)).shape, in_two);
  strides.erase(strides.begin() + 2);
  return strides;
}

}  // namespace

Extents strides_in_memory_format(const ir::Graph& graph, ir::ValueId result, std::span<const std::int64_t> shape, std::span<const Operand> operands) {
  const ir::Value& value = graph.value(result);
  const bool convolution = value.kind == ir::ValueKind::result && graph.node(value.node).op == "convolution";
  if (convolution && shape.size() == 3) return strides_over_one_dimension(shape, operands);
  Extents strides = memory_format_strides(shape, operands);
  if (convolution && shape.size() == 5 && !is_row_major(shape, strides) && !keeps_memory_format(graph, graph.node(value.node), graph.type(result).dtype, operands)) return row_major(shape);
  return strides;
}

}  // namespace tenon::python
