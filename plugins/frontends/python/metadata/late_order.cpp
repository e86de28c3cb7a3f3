#include "python/metadata/late_order.h"

#include "core/ops/infer.h"
#include "python/objects/graph_break.h"

namespace tenon::python {
namespace {

using ir::Dim;

/// Whether an expression has one sign, or is 0, for all sizes from 2 on.
bool has_one_sign(const ir::Graph& graph, const Dim& dim) {
  const auto from_two = [&](SymbolId s) { return graph.symbols()[s.value].min < 2 ? Dim::symbol(s) + Dim(1) : Dim::symbol(s); };
  const ops::infer::Interval range = ops::infer::range(graph, dim.substitute(from_two));
  return range.least > 0 || range.most < 0 || range.least == range.most;
}

}  // namespace

ir::Shape late_strides(const Extents& made_up, const Extents& strides, const ir::Shape& shape) {
  if (strides == row_major(made_up)) return ir::row_major_strides(shape);
  const std::vector<std::int64_t> order = memory_order(made_up, strides);
  if (order.empty()) throw GraphBreak("a size that depends on data", kDataSizeHint);
  ir::Shape dense(shape.size());
  Dim step(1);
  for (std::size_t k = order.size(); k-- > 0;) {
    const auto d = static_cast<std::size_t>(order[k]);
    dense[d] = step;
    step = step * shape[d];
  }
  return dense;
}

bool lies_in_one_order(const ir::Graph& graph, const ir::Shape& result, std::span<const LateOperand> operands) {
  for (const LateOperand& operand : operands) {
    const std::size_t rank = operand.shape.size(), front = result.size() - rank;
    for (std::size_t d = 0; d < rank; ++d) {
      if (!has_one_sign(graph, operand.strides[d])) return false;
      for (std::size_t e = 0; e < d; ++e) {
        if (operand.strides[d] == operand.strides[e] ? !has_one_sign(graph, result[front + d] - result[front + e])
                                                     : !has_one_sign(graph, operand.strides[d] - operand.strides[e]))
          return false;
      }
    }
  }
  return true;
}

}  // namespace tenon::python
