#include "core/ops/view.h"

#include <algorithm>

#include "core/ops/catalog.h"

namespace tenon::ops {
namespace {

bool computes(const Instruction& i) { return i.op > Primitive::load && i.dtype != DType::i64; }

}  // namespace

bool is_view(const LoopBody& body) { return !body.reducer && std::ranges::none_of(body.element.instructions, computes); }

bool is_view(const ir::Graph& graph, NodeId id) {
  const ir::Node& node = graph.node(id);
  if (node.operands.size() != 1 || node.results.size() != 1 || graph.value(node.operands[0]).kind == ir::ValueKind::literal) return false;
  const auto loop = loop_of(graph, id);
  if (!loop || !is_view(*loop)) return false;
  const Instruction& result = loop->element.instructions[loop->element.results[0]];
  return result.op == Primitive::load && !result.masked && std::ranges::count(loop->element.instructions, Primitive::load, &Instruction::op) == 1;
}

}  // namespace tenon::ops
