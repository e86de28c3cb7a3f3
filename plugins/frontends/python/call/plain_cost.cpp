#include "python/call/plain_cost.h"

#include <algorithm>
#include <string_view>

#include "core/ops/catalog.h"
#include "python/graph/array_work.h"

namespace tenon::python {
namespace {

// In nanoseconds, as measured with CPython 3.11, NumPy 2 and torch 2 on one core.
constexpr double kInstruction = 10;
constexpr double kCallOnScalars = 50;
constexpr double kItemOfArray = 100;
constexpr double kCallOnArrays = 500;
constexpr double kCallOnTensors = 1500;
constexpr double kElement = 0.5;

bool is_item(std::string_view call) { return call == "numpy.ndarray.__getitem__" || call == "numpy.ndarray.__setitem__"; }

}  // namespace

PlainWork plain_work(const CapturedGraph& captured, std::size_t instructions) {
  constexpr std::size_t kMany = 8;
  PlainWork work;
  work.takes_apart = captured.tensors.size() >= kMany;
  double cost = kInstruction * static_cast<double>(instructions);
  std::size_t on_arrays = 0;
  const ir::Graph& graph = captured.recording->graph;
  for (ir::NodeId id : graph.nodes()) {
    const ir::Node& node = graph.node(id);
    const ops::Op* op = ops::find_op(node.op);
    if (node.op == "constant" || (op && op->traits.opaque)) continue;
    work.takes_apart |= node.results.size() >= kMany;
    work.takes_element |= node.op == "select" && graph.type(node.results.front()).rank() == 0;
    const double most = elements_of(graph, id);
    on_arrays += most > 0;
    cost += kElement * most;
  }
  work.on_arrays = on_arrays > 0;
  // Opaque calls take as long compiled. Of NumPy's others no more are on arrays than there are nodes that compute some.
  std::size_t opaque = captured.opaque_calls.size();
  for (std::size_t i = 0; i < captured.recording->op_names.size(); ++i) {
    const std::string& call = captured.recording->op_names[i];
    if (captured.recording->trace.calls[i].gives_number) continue;
    const bool numpy = call.starts_with("numpy.");
    if (numpy && is_item(call)) cost += kItemOfArray;
    else if (opaque > 0) --opaque;
    else if (!numpy) cost += kCallOnTensors;
    else if (on_arrays > 0) --on_arrays, cost += kCallOnArrays;
    else cost += kCallOnScalars;
  }
  work.nanoseconds = cost;
  return work;
}

}  // namespace tenon::python
