#include "python/graph/moving_nodes.h"

#include <algorithm>

#include "core/ops/catalog.h"

namespace tenon::python {

bool only_moves(const ir::Graph& graph, ir::NodeId node) {
  // One load without a mask, at any index, and its value, or a part of it, is the result.
  auto loop = ops::loop_of(graph, node);
  if (!loop) return true;  // not known: let the library say
  if (loop->reducer || loop->element.results.size() != 1) return false;
  const auto& instructions = loop->element.instructions;
  const ops::Instruction& result = instructions[loop->element.results.front()];
  const bool part = result.op == ops::Primitive::real || result.op == ops::Primitive::imag;
  const ops::Instruction& last = part ? instructions[result.args[0]] : result;
  return last.op == ops::Primitive::load && !last.masked;
}

bool is_always_view(const ir::Graph& graph, ir::NodeId node) {
  const ir::Node& made = graph.node(node);
  if (made.op == "reshape") {  // which only gains or loses dimensions of size 1
    const auto without_ones = [&](ir::ValueId value) {
      ir::Shape shape = graph.type(value).shape;
      std::erase(shape, ir::Dim(1));
      return shape;
    };
    return without_ones(made.operands.front()) == without_ones(made.results.front());
  }
  return made.op == "slice" || made.op == "select" || made.op == "permute" || made.op == "expand";
}

bool moves_many_complex(const ir::Graph& graph, ir::NodeId node) {
  constexpr std::int64_t kMany = 1024;
  const ops::Op* op = ops::find_op(graph.node(node).op);
  if (op && op->traits.copies) return false;
  const auto on_host = [&](ir::ValueId value) { return graph.type(value).device.is_host(); };
  if (std::ranges::all_of(graph.node(node).results, on_host) && ((op && op->scatter) || ops::loop_of(graph, node))) return false;
  const auto many = [&](ir::ValueId value) {
    if (graph.value(value).kind == ir::ValueKind::literal || !is_complex(graph.type(value).dtype)) return false;
    const ir::Dim count = graph.type(value).element_count();
    return count.is_constant() && count.constant() > kMany;
  };
  return std::ranges::any_of(graph.node(node).operands, many) || std::ranges::any_of(graph.node(node).results, many);
}

bool only_moves_elements(const ir::Graph& graph, std::size_t first) {
  for (std::size_t i = first; i < graph.nodes().size(); ++i)
    if (!only_moves(graph, graph.nodes()[i])) return false;
  return true;
}

}  // namespace tenon::python
