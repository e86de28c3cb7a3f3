#include "python/recording/recorded_functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "core/ops/catalog.h"
#include "core/ops/gradients/own_gradients.h"
#include "core/ops/op.h"
#include "python/objects/graph_break.h"

namespace tenon::python {

void RecordedFunctions::begin(std::span<PyObject* const> inputs, std::span<PyObject* const> outputs, std::span<PyObject* const> kept, std::span<PyObject* const> by_itself) {
  Applied applied;
  applied.function = gradients_.function_of({}, inputs, outputs, kept);
  for (PyObject* tensor : kept)
    if (stand_ins_.find(tensor)) applied.kept.push_back(Ref::borrow(tensor));
  for (PyObject* tensor : by_itself)
    if (const auto index = stand_ins_.find(tensor); index && !stand_ins_[stand_ins_.owner(*index)].input) applied.function.by_itself.push_back(*index);
  history_.make_own(applied.function, false);
  open_.push_back(std::move(applied));
}

std::vector<Ref> RecordedFunctions::begin_way(bool again) {
  Applied& applied = open_.back();
  applied.depth = depth_;
  depth_ = again ? depth_ + 1 : -1;
  applied.again = again;
  applied.trace = trace_.now();
  std::vector<Ref> given;
  for (std::size_t k = 0; k < applied.function.outputs.size(); ++k) {
    core_.builder.on(graph_.type(applied.function.roots[k]).device);
    applied.tangents.push_back(core_.builder.one("tangent", {applied.function.roots[k]}));
    given.push_back(gradients_.as_gradient(applied.tangents.back(), applied.function.outputs[k]));
    if (again) history_.track(stand_ins_.require(given.back().get()));
  }
  applied.first_node = graph_.nodes().size();
  return given;
}

void RecordedFunctions::end_way(std::span<PyObject* const> gradients) {
  Applied& applied = open_.back();
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (gradients[i] == Py_None) {
      applied.gradients.emplace_back();
      continue;
    }
    const auto index = stand_ins_.find(gradients[i]);
    if (!index) throw GraphBreak("the backward of a torch.autograd.Function gives a tensor that it has not computed");
    const History::Scope scope(history_, applied.again);
    const ir::ValueId value = history_.operand(*index, core_.present.of(*index));
    const ir::Type &type = graph_.type(value), &wanted = graph_.type(applied.function.values[i]);
    if (type.dtype != wanted.dtype || type.shape != wanted.shape || !(type.device == wanted.device)) throw GraphBreak("the backward of a torch.autograd.Function gives a gradient of another shape or dtype");
    applied.gradients.push_back(value);
  }
  require_followed(applied);
  applied.read = read_from_outside(applied);
  (void)trace_.cut(applied.trace);
  depth_ = applied.depth;
}

/// A graph of gradients computes: it draws no numbers, calls nobody, and reads of the inputs only what the function has kept.
void RecordedFunctions::require_followed(const Applied& applied) const {
  std::unordered_set<std::uint32_t> kept;
  for (ir::ValueId input : kept_inputs(applied)) kept.insert(input.value);
  for (ir::NodeId id : graph_.nodes().subspan(applied.first_node)) {
    const ir::Node& node = graph_.node(id);
    const ops::Op* op = ops::find_op(node.op);
    if (!op || op->traits.random || (op->traits.opaque && !ops::is_gradient_call(node)) || op->traits.control) throw GraphBreak(fmt::format("the backward of a torch.autograd.Function calls {}", node.op));
    if (ops::is_own_gradient(node)) continue;  // it says where gradients go, and reads nothing
    for (ir::ValueId v : node.operands)
      if (graph_.value(v).kind == ir::ValueKind::input && !kept.contains(v.value) && stand_ins_[inputs_.stand_ins()[graph_.value(v).index]].kind == TensorKind::torch)
        throw GraphBreak("the backward of a torch.autograd.Function reads a tensor that its forward has not saved");
  }
}

/// What nodes of the way back read that it has not computed itself.
std::vector<ir::ValueId> RecordedFunctions::read_from_outside(const Applied& applied) const {
  std::vector<ir::ValueId> read;
  std::unordered_set<std::uint32_t> known;
  for (ir::ValueId v : applied.tangents) known.insert(v.value);
  const auto note = [&](ir::ValueId v) {
    if (graph_.value(v).kind == ir::ValueKind::result && known.insert(v.value).second) read.push_back(v);
  };
  for (ir::NodeId id : graph_.nodes().subspan(applied.first_node)) {
    for (ir::ValueId v : graph_.node(id).results) known.insert(v.value);
    std::ranges::for_each(graph_.node(id).operands, note);
  }
  for (ir::ValueId v : applied.gradients)
    if (v) note(v);
  return read;
}

/// Those among whose elements are tensors that the function has kept.
std::vector<ir::ValueId> RecordedFunctions::kept_inputs(const Applied& applied) const {
  std::vector<ir::ValueId> kept;
  for (const Ref& tensor : applied.kept)
    if (const auto input = stand_ins_[stand_ins_.owner(stand_ins_.require(tensor.get()))].input) kept.push_back(graph_.inputs()[*input]);
  return kept;
}

void RecordedFunctions::end(bool keeps, bool once, std::string absent) {
  Applied applied = std::move(open_.back());
  open_.pop_back();
  const History::AppliedFunction& function = applied.function;
  std::vector<ir::ValueId> inputs, gradients;
  for (std::size_t i = 0; i < function.values.size(); ++i) {
    if (applied.gradients[i]) {
      inputs.push_back(function.values[i]);
      gradients.push_back(applied.gradients[i]);
    } else if (history_.is_behind_own_gradient(function.values[i])) {
      throw GraphBreak("the backward of a torch.autograd.Function gives no gradient of what another one gave");
    }
  }
  if (inputs.empty()) throw GraphBreak("the backward of a torch.autograd.Function gives no gradient");
  const std::vector<ir::ValueId> kept = kept_inputs(applied);
  std::vector<ir::ValueId> operands = function.roots;
  const auto add = [&](ir::ValueId value) { operands.push_back(core_.builder.one("detach", {value})); };
  operands.insert(operands.end(), inputs.begin(), inputs.end());
  std::ranges::for_each(kept, add);
  std::ranges::for_each(applied.read, add);
  operands.insert(operands.end(), applied.tangents.begin(), applied.tangents.end());
  std::ranges::for_each(gradients, add);
  const auto count = [](std::span<const ir::ValueId> values) { return ir::Dim(static_cast<std::int64_t>(values.size())); };
  history_.end_own(function, core_.builder.call("own_gradient", std::move(operands),
                                                {{"results", count(function.roots)},
                                                 {"inputs", count(inputs)},
                                                 {"kept", count(kept)},
                                                 {"read", count(applied.read)},
                                                 {"keeps", keeps},
                                                 {"again", applied.again},
                                                 {"once", once},
                                                 {"absent", std::move(absent)}}));
}

void RecordedFunctions::require_walkable(std::span<PyObject* const> from) const {
  for (PyObject* tensor : from) {
    const auto index = stand_ins_.find(tensor);
    if (!index || !stand_ins_[*index].requires_grad) continue;
    const ir::ValueId value = core_.present.of(*index);
    if (open_.empty() && history_.is_behind_own_gradient(value)) throw GraphBreak("gradients are computed through a torch.autograd.Function, of which some results leave the graph");
    history_.require_own_unwritten(value);
  }
}

}  // namespace tenon::python
