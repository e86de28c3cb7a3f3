#include "python/graph/array_work.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/ops/catalog.h"
#include "core/ops/view.h"

namespace tenon::python {
namespace {

constexpr double kElementsOfUnknownSize = 1000;

double elements(const ir::Type& type) {
  double count = 1;
  for (const ir::Dim& dim : type.shape) {
    if (!dim.is_constant()) return kElementsOfUnknownSize;
    count *= static_cast<double>(dim.constant());
  }
  return count;
}

}  // namespace

double elements_of(const ir::Graph& graph, ir::NodeId id) {
  const ir::Node& node = graph.node(id);
  const ops::Op* op = ops::find_op(node.op);
  const bool pointwise = op && op->body;
  if (node.op == "unbind" || (!pointwise && ops::is_view(graph, id))) return 0;
  double most = 0;
  const auto count = [&](ir::ValueId value) {
    if (const ir::Type& type = graph.type(value); type.rank() > 0) most = std::max(most, elements(type));
  };
  if (op && op->written_part) {
    count(node.operands[1]);
    return most;
  }
  for (ir::ValueId result : node.results) count(result);
  if (pointwise) return most;
  const auto loop = ops::loop_of(graph, id);
  if (!loop || loop->reducer)
    for (ir::ValueId operand : node.operands) count(operand);
  return most;
}

/// Whether a node gives many elements, or goes through many. One whose meaning cannot be asked (a number that no integer holds) counts by what it gives: its
/// call raises.
static bool handles_many(const ir::Graph& graph, ir::NodeId id) {
  constexpr double kFew = 8;  // numbers that the program reads one by one are put together
  const auto is_many = [&](ir::ValueId result) { return graph.type(result).rank() > 0 && elements(graph.type(result)) > kFew; };
  if (std::ranges::any_of(graph.node(id).results, is_many)) return true;  // without asking for its meaning
  try {
    return elements_of(graph, id) > kFew;
  } catch (const Exception&) {
    return false;
  }
}

std::optional<std::size_t> first_of_number(const ir::Graph& graph, ir::ValueId value) {
  std::vector<bool> makes(graph.node_capacity(), false);
  std::vector<ir::ValueId> open{value};
  while (!open.empty()) {
    const ir::Value& made = graph.value(open.back());
    open.pop_back();
    if (made.kind != ir::ValueKind::result || makes[made.node.value] || graph.node(made.node).op == "constant") continue;
    if (handles_many(graph, made.node)) return {};
    makes[made.node.value] = true;
    open.insert(open.end(), graph.node(made.node).operands.begin(), graph.node(made.node).operands.end());
  }
  const auto nodes = graph.nodes();
  const auto first = std::ranges::find_if(nodes, [&](ir::NodeId id) { return makes[id.value]; });
  return first == nodes.end() ? std::nullopt : std::optional<std::size_t>(first - nodes.begin());
}

std::size_t ArrayWork::count(const ir::Graph& graph) {
  for (; seen_ < graph.nodes().size(); ++seen_) {
    const ir::NodeId id = graph.nodes()[seen_];
    const ops::Op* op = ops::find_op(graph.node(id).op);
    const bool computes = graph.node(id).op != "constant" && !(op && op->traits.opaque);
    count_ += computes && handles_many(graph, id);
  }
  return count_;
}

}  // namespace tenon::python
