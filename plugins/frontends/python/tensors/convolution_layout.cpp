#include "python/tensors/convolution_layout.h"

#include "core/ops/infer.h"
#include "core/ops/op.h"
#include "python/evaluator/graph_break.h"

namespace tenon::python {

bool keeps_memory_format(const ir::Graph& graph, ir::ValueId result, std::span<const Operand> operands) {
  constexpr std::int64_t kManyElements = 20480, kSmallKernel = 3;
  const ir::Node& node = graph.node(graph.value(result).node);
  if (node.op != "convolution") return true;
  const DType dtype = graph.type(result).dtype;
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

}  // namespace tenon::python
