#include "python/call/gradients/segment_node.h"

#include <algorithm>
#include <utility>

#include "python/call/gradients/function_node.h"
#include "python/call/gradients/native_node.h"
#include "python/objects/gil.h"
#include "python/objects/imported.h"
#include "python/objects/sequences.h"

namespace tenon::python {
namespace {

// Graphs of one node: each costs its compilation. Beyond them only which gradients are given makes others.
constexpr std::size_t kManyFunctions = 8;

/// The inputs, tensors and numbers of a captured graph: what its gradients are made from.
CapturedGraph outline(const CapturedGraph& captured) {
  CapturedGraph made;
  made.inputs = captured.inputs;
  made.input_steps = captured.input_steps;
  made.tensors = captured.tensors;
  made.opaque_calls = captured.opaque_calls;
  made.gradients = captured.gradients;
  made.numbers = captured.numbers;
  return made;
}

/// Whether all is the host's: what the nodes keep can be kept as memory, without its object.
bool keeps_memory_only(const CapturedGraph& captured) {
  const auto is_elsewhere = [](const TensorOutput& tensor) { return !tensor.device.is_host(); };
  if (std::ranges::any_of(captured.tensors, is_elsewhere)) return false;
  const auto of_torch = [&](std::uint32_t i) {
    const TensorSpec& input = captured.inputs[i];
    if (!input.device.is_host()) return false;
    return input.kind == TensorKind::scalar || (input.kind == TensorKind::torch && input.key_set != 0 && !input.is_inference());
  };
  return std::ranges::all_of(captured.gradients->nodes, [&](const GradientNode& node) { return std::ranges::all_of(node.part.kept_inputs, of_torch); });
}

}  // namespace

NodeCounts& node_counts() {
  static NodeCounts counts;
  return counts;
}

std::shared_ptr<SegmentBackward> SegmentBackward::of(const CapturedGraph& captured, const Settings& settings, const std::string& name, std::shared_ptr<LaterCheck> later) {
  return {new SegmentBackward(captured, settings, name, std::move(later)), [](SegmentBackward* backward) {
            if (!Py_IsInitialized()) return;  // what Python held is gone with it
            const GilHeld gil;
            delete backward;
          }};
}

SegmentBackward::SegmentBackward(const CapturedGraph& captured, const Settings& settings, const std::string& name, std::shared_ptr<LaterCheck> later)
    : gradients_(captured.gradients), segment_(outline(captured)), settings_(settings), name_(name + ".backward"), later_(std::move(later)),
      native_(node_tier().native && !settings.callable && keeps_memory_only(captured)), on_device_(captured.is_on_device()) {  // a callable takes objects
  for (const GradientNode& node : gradients_->nodes) nodes_.emplace_back(std::make_unique<Node>())->metadata.resize(node.results.size());
}

void SegmentBackward::require_as_at_call() const {
  const std::optional<GuardFailure> changed = later_ ? later_->failure() : std::nullopt;
  if (!changed) return;
  static PyObject* const refuse = checked(PyObject_GetAttrString(checked(imported("tenon._hooks")).get(), "refuse_gradients")).release();
  checked(PyObject_CallFunction(refuse, "Nss", tuple_of(later_->readers()).release(), changed->guard.c_str(), changed->found.c_str()));
}

void SegmentBackward::refuse_written(const std::string& text) const {
  if (!keeps_by_itself()) return;
  static PyObject* const refuse = checked(PyObject_GetAttrString(checked(imported("tenon._hooks")).get(), "refuse_written")).release();
  checked(PyObject_CallFunction(refuse, "Ns", tuple_of(later_->keepers()).release(), text.c_str()));
}

const SegmentBackward::Function* SegmentBackward::known(std::size_t node, const BackwardRequest& request) {
  const std::lock_guard lock(mutex_);
  const auto& functions = nodes_[node]->functions;
  const auto found = std::ranges::find(functions, request, [](const auto& f) -> const BackwardRequest& { return f->request; });
  return found == functions.end() || !(*found)->function.is_compiled() ? nullptr : found->get();
}

const SegmentBackward::Function& SegmentBackward::function(std::size_t node, const BackwardRequest& request, std::span<PyObject* const> examples) {
  if (const Function* function = known(node, request)) return *function;
  const GradientNode& gradients = this->node(node);
  const bool whole = std::ranges::all_of(request.tangents, [](TangentLayout t) { return t == TangentLayout::row_major; }) &&
                     std::ranges::all_of(request.asked, std::identity());
  const GradientGraph graph = whole ? gradients.whole : gradients_of(segment_, gradients, request.tangents, request.asked);
  std::unique_ptr<Function> made(new Function{request, GraphFunction(graph.captured, settings_, name_, request.rounding), graph.gradients});
  made->function.compile(examples);
  ++node_counts().backward_graphs;
  const std::lock_guard lock(mutex_);
  return *nodes_[node]->functions.emplace_back(std::move(made));
}

BackwardRequest SegmentBackward::usual(std::size_t node, BackwardRequest request) {
  const std::lock_guard lock(mutex_);
  if (nodes_[node]->functions.size() < kManyFunctions) return request;
  for (TangentLayout& tangent : request.tangents)
    if (tangent != TangentLayout::none) tangent = TangentLayout::row_major;
  request.asked.assign(request.asked.size(), true);
  return request;
}

SegmentBackward::Again* SegmentBackward::known_again(std::size_t node, const std::vector<TangentHistory>& given) {
  const Float32Rounding now = rounding();
  const std::lock_guard lock(mutex_);
  for (const auto& again : nodes_[node]->agains)
    if (again->given == given && again->rounding == now) return again.get();
  return nullptr;
}

SegmentBackward::Again& SegmentBackward::again(std::size_t node, const std::vector<TangentHistory>& given, std::span<PyObject* const> examples) {
  if (Again* again = known_again(node, given)) return *again;
  const std::shared_ptr<CapturedGraph> captured = gradients_with_gradients(segment_, this->node(node), given);
  std::unique_ptr<Again> made(new Again{given, rounding(), {}, {}, {}});
  if (captured) {
    made->runs = RunsOfGraph::of(*captured);
    made->function.emplace(captured, settings_, name_, made->rounding).compile(examples);
    made->backward = of(*captured, settings_, name_);
  }
  const std::lock_guard lock(mutex_);
  return *nodes_[node]->agains.emplace_back(std::move(made));
}

int SegmentBackward::traverse(visitproc visit, void* arg) const {
  Py_VISIT(settings_.callable.get());
  if (later_ && later_.use_count() == 1)
    if (int stopped = later_->traverse(visit, arg)) return stopped;
  for (const auto& node : nodes_) {
    for (const auto& function : node->functions)
      if (int stopped = function->function.traverse(visit, arg)) return stopped;
    for (const auto& again : node->agains) {
      if (again->function)
        if (int stopped = again->function->traverse(visit, arg)) return stopped;
      if (again->backward && again->backward.use_count() == 1)
        if (int stopped = again->backward->traverse(visit, arg)) return stopped;
    }
  }
  return 0;
}

void add_nodes(const std::shared_ptr<SegmentBackward>& backward, const NodesOfRun& run) {
  node_counts().nodes += static_cast<std::int64_t>(backward->gradients().nodes.size());
  if (backward->is_native()) add_native_nodes(backward, run);
  else add_function_nodes(backward, run);
}

}  // namespace tenon::python
