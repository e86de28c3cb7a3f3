#include "python/graph/kept_runs.h"

#include <algorithm>

#include "python/graph/captured_graph.h"
#include "python/objects/gil.h"
#include "python/objects/imported.h"
#include "python/objects/pending_exception.h"
#include "python/opaque/opaque_call.h"

namespace tenon::python {
namespace {

Ref kept_runs(const char* function, PyObject* argument = nullptr) {
  static PyObject* const module = checked(imported("tenon._kept_runs")).release();
  return checked(PyObject_CallMethod(module, function, argument ? "O" : nullptr, argument));
}

}  // namespace

RunsOfGraph RunsOfGraph::of(const CapturedGraph& captured) {
  RunsOfGraph runs;
  const ir::Graph& graph = captured.graph();
  std::vector<ir::ValueId> numbers;
  for (ir::NodeId id : graph.nodes()) {
    const ir::Node& node = graph.node(id);
    const auto* handle = node.attribute("handle");
    const auto call = handle ? OpaqueCall::find(std::get<ir::Dim>(*handle).constant()) : nullptr;
    if (call && call->keeps_run) numbers.push_back(node.results[call->results.size() - 1]);  // behind it may be a token
  }
  runs.any = !numbers.empty();
  for (std::uint32_t t = 0; runs.any && t < captured.tensors.size(); ++t) {
    const TensorOutput& tensor = captured.tensors[t];
    if (tensor.kind == TensorOutput::Kind::fresh && std::ranges::find(numbers, graph.outputs()[tensor.index].value) != numbers.end()) runs.tensors.push_back(t);
  }
  return runs;
}

KeptRuns::KeptRuns(const RunsOfGraph& runs) : any_(runs.any) {
  if (!any_) return;
  const GilHeld gil;
  kept_runs("begin");
}

KeptRuns::~KeptRuns() {
  if (!any_) return;
  const GilHeld gil;
  const PendingException pending;
  try {
    kept_runs("end");
  } catch (const PythonError&) {
    PyErr_WriteUnraisable(nullptr);
  }
}

Ref KeptRuns::owner(PyObject* number) { return kept_runs("owner", number); }

}  // namespace tenon::python
