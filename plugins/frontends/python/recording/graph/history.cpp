#include "python/recording/graph/history.h"

#include <algorithm>

#include "python/objects/graph_break.h"

namespace tenon::python {

bool History::tracks(std::span<const Index> operands) const {
  const auto requires_grad = [&](Index index) { return core_.stand_ins[index].requires_grad; };
  return std::ranges::any_of(operands, requires_grad) && torch_state().value_or(core_.state).grad_enabled();
}

void History::require_tracked(std::span<const Index> operands) const {
  if (!wanted_) throw GraphBreak("an operation on a tensor that requires grad, with grad mode on", kGradHint);
  if (core_.in_branch()) throw GraphBreak("a control op on tensors that require grad");
  if (core_.symbols.any_data()) throw GraphBreak("a size that depends on data beside tensors that require grad");
  for (Index index : operands) {
    const StandIn& s = core_.stand_ins[index];
    if (!s.requires_grad) continue;
    if (!is_float(s.dtype)) throw GraphBreak("complex numbers that require grad");
    if (!s.device.is_host()) throw GraphBreak("a tensor of a device that requires grad", kGradHint);
    if (s.untracked) throw GraphBreak("a view that was made without grad mode, of a tensor that requires grad");
    if (is_input_memory(index) && core_.stand_ins.storage_of(index).version > 0) throw GraphBreak("an operation with grad mode on, on a tensor that was written without");
  }
}

bool History::has_node(PyObject* stand_in) const {
  const auto index = core_.stand_ins.find(stand_in);
  return index && core_.stand_ins[*index].requires_grad && !core_.stand_ins[*index].input;
}

/// Whether a value depends on an input that requires grad. Values of nodes are looked at in the order of the graph: chains of them may be long.
bool History::depends(ir::ValueId value) {
  const auto known = [&](ir::ValueId v) -> signed char { return v.value < depends_.size() ? depends_[v.value] : -1; };
  if (core_.graph.value(value).kind != ir::ValueKind::result) return depends_now(value);
  const auto look_on = [&] {
    const auto nodes = core_.graph.nodes();
    depends_.resize(core_.graph.value_capacity(), -1);
    for (; looked_at_ < nodes.size() && known(value) < 0; ++looked_at_) {
      const ir::Node& node = core_.graph.node(nodes[looked_at_]);
      if (node.results.empty() || known(node.results.front()) >= 0) continue;
      const auto reads = [&](ir::ValueId v) { return core_.graph.value(v).kind == ir::ValueKind::result ? known(v) > 0 : depends_now(v); };
      const bool any = node.op != "detach" && std::ranges::any_of(node.operands, reads);
      for (ir::ValueId result : node.results) depends_[result.value] = any && is_float(core_.graph.type(result).dtype);
    }
  };
  if (known(value) < 0) look_on();
  if (known(value) < 0) {  // nodes before it were erased since
    looked_at_ = 0;
    look_on();
  }
  return known(value) > 0;
}

/// Of an input or a literal.
bool History::depends_now(ir::ValueId value) const {
  const ir::Value& v = core_.graph.value(value);
  return v.kind == ir::ValueKind::input && core_.stand_ins[inputs_.stand_ins()[v.index]].requires_grad;
}

ir::ValueId History::operand(Index index, ir::ValueId value) { return tracking_ && !core_.stand_ins[index].requires_grad ? cut(value) : value; }

ir::ValueId History::cut(ir::ValueId value) { return depends(value) ? core_.builder.one("detach", {value}) : value; }

void History::note_results(PyObject* results, Index first) {
  if (PyTuple_Check(results) || PyList_Check(results)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(results); ++i) note_results(PySequence_Fast_GET_ITEM(results, i), first);
    return;
  }
  const auto index = core_.stand_ins.find(results);
  if (!index || *index < first) return;
  const ir::ValueId value = core_.present.of(*index);
  StandIn& s = core_.stand_ins[*index];
  if (s.kind == TensorKind::torch && s.detached == Detached::no && is_float(s.dtype)) s.requires_grad = depends(value);
  core_.stand_ins.storage_of(*index).requires_grad |= s.requires_grad;
}

void History::require_writable(Index target) {
  const bool any = core_.stand_ins.storage_of(target).requires_grad;
  if (!any && !tracking_) return;
  if (!any) {  // it becomes a part of the autograd graph
    if (is_input_memory(target)) throw GraphBreak("a write to an input that requires no grad, of what does");
    if (depends(core_.present.of(core_.stand_ins.owner(target)))) throw GraphBreak("a write with grad mode on, to a tensor that was made without");
    return;
  }
  if (!torch_state().value_or(core_.state).grad_enabled()) {
    if (!is_input_memory(target)) throw GraphBreak("a write without grad mode, to a tensor that requires grad");
    return;
  }
  const StandIn& s = core_.stand_ins[target];
  if (is_input_memory(target) || !s.requires_grad || s.untracked) throw GraphBreak("a write to a tensor that requires grad, or that shares its memory");
}

void History::note_write(Index target) {
  if (!tracking_) return;
  core_.stand_ins.storage_of(target).requires_grad = true;
  for (Index index = 0; index < core_.stand_ins.size(); ++index) {
    StandIn& s = core_.stand_ins[index];
    if (s.storage == core_.stand_ins[target].storage && s.kind == TensorKind::torch && s.detached == Detached::no && !s.counts_apart) s.requires_grad = true;
  }
}

}  // namespace tenon::python
