// Hooks on tensors that the graph computes: functions of the program that give a tensor as it is, and are told of its gradient.
#include <algorithm>

#include "python/objects/graph_break.h"
#include "python/objects/hints.h"
#include "python/recording/graph/history.h"

namespace tenon::python {

void History::retain_gradient(Index index) const {
  const StandIn& s = core_.stand_ins[index];
  if (s.requires_grad && !s.input && !s.leaf) throw Unbuildable(s.object.get(), "a tensor is to retain its gradient");
}

void History::require_retaining_unwritten(const AppliedFunction& hooks) const {
  if (!hooks.of_hooks || !retaining_.contains(hooks.inputs.front()) || core_.present.of(hooks.inputs.front()) == hooks.roots.front()) return;
  throw Unbuildable(core_.stand_ins[hooks.inputs.front()].object.get(), "a tensor that retains its gradient is written");
}

const History::AppliedFunction* History::hooks_of(Index index) const {
  const auto found = std::ranges::find_if(functions_, [&](const AppliedFunction& f) { return f.of_hooks && f.inputs.front() == index && f.roots.front() == core_.present.of(index); });
  return found == functions_.end() ? nullptr : &*found;
}

bool History::leads_to(ir::ValueId value, std::span<const ir::ValueId> others) const {
  const auto leads = [&](const AppliedFunction& function) {
    return std::ranges::any_of(function.roots, [&](ir::ValueId root) { return is_on(value, root); }) &&
           std::ranges::any_of(function.values, [&](ir::ValueId behind) { return leads_to(behind, others); });
  };
  return std::ranges::any_of(others, [&](ir::ValueId other) { return is_on(value, other); }) || std::ranges::any_of(functions_, leads);
}

Ref History::hook(Ref context, std::span<const Index> tensors, std::optional<bool> retains) {
  if (!wanted_) throw GraphBreak("a hook is put on a tensor", kGradHint);
  if (retains.value_or(false)) retaining_.insert(tensors.begin(), tensors.end());
  const AppliedFunction* known = retains ? hooks_of(tensors.front()) : nullptr;
  if (known) return known->context;
  AppliedFunction function;
  function.context = context;
  function.of_hooks = retains.has_value();
  for (Index index : tensors) {
    StandIn& s = core_.stand_ins[index];
    const ir::ValueId value = core_.present.of(index);
    const auto reads = [&](ir::NodeId id) { return std::ranges::find(core_.graph.node(id).operands, value) != core_.graph.node(id).operands.end(); };
    if (core_.in_branch() || s.input || s.leaf || !s.requires_grad) throw GraphBreak("a hook is put on a tensor that was there before the call", kHookHint);
    if (s.viewed || std::ranges::any_of(core_.graph.nodes(), reads)) throw Unbuildable(s.object.get(), "a hook is put on a view, or on a tensor from which something was computed before");
    function.inputs.push_back(index);
    function.values.push_back(value);
  }
  for (Index index : function.inputs) function.roots.push_back(core_.stand_ins[index].value = new_root(core_.stand_ins[index].value));
  function.outputs = function.inputs;
  functions_.push_back(std::move(function));
  return context;
}

}  // namespace tenon::python
