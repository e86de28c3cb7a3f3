#include "python/recording/graph/history.h"

#include <algorithm>

#include "core/ops/catalog.h"
#include "core/rewrite/differentiate.h"
#include "core/rewrite/never_chosen.h"
#include "python/objects/graph_break.h"

namespace tenon::python {
namespace {

/// Whether a call of the library gives the value, of which the graph has no gradient.
bool is_of_library(const ir::Graph& graph, ir::ValueId value) {
  if (graph.value(value).kind != ir::ValueKind::result) return false;
  const ops::Op* op = ops::find_op(graph.node(graph.value(value).node).op);
  return !op || op->traits.opaque;
}

}  // namespace

bool History::tracks(std::span<const Index> operands) const {
  const auto requires_grad = [&](Index index) { return core_.stand_ins[index].requires_grad; };
  return std::ranges::any_of(operands, requires_grad) && torch_state().value_or(core_.state).grad_enabled();
}

void History::require_tracked(std::span<const Index> operands) const {
  if (!wanted_) throw GraphBreak("an operation on a tensor that requires grad, with grad mode on", kGradHint);
  if (core_.in_branch()) throw GraphBreak("a control op on tensors that require grad");
  for (Index index : operands) {
    const StandIn& s = core_.stand_ins[index];
    if (core_.is_inference(index)) throw GraphBreak("a tensor that was made in inference mode, beside tensors that require grad");
    if (!s.requires_grad) continue;
    require_view_unwritten(index);
    if (!is_float(s.dtype) && (!is_complex(s.dtype) || s.input || s.leaf)) throw GraphBreak("complex numbers that require grad", kComplexGradHint);
    if (s.untracked && !s.leaf) throw GraphBreak("a view that was made without grad mode, of a tensor that requires grad");
    if (!reads_present_root(index)) throw GraphBreak("an operation with grad mode on, on a view of a tensor that was written without");
  }
}

/// Whether the value of a tensor is what torch would differentiate by: memory that was written without grad mode has a history of its own from then
/// on, which views from before do not have.
bool History::reads_present_root(Index index) const {
  const StandIn& s = core_.stand_ins[index];
  const std::uint32_t version = core_.stand_ins.storage_of(index).version;
  if (version == 0 || s.leaf || s.input || !(is_input_memory(index) || is_leaf_memory(index))) return true;
  const auto made = view_versions_.find(index);
  return made != view_versions_.end() && made->second == version && s.version == version;
}

void History::ask_for_gradient(Index index, bool wanted) {
  StandIn& s = core_.stand_ins[index];
  if (s.requires_grad == wanted) return;
  if (!wanted_) throw GraphBreak("gradients are asked for", kGradHint);
  if (s.input) return ask_of_input(index, wanted);
  const bool born = s.kind == TensorKind::torch && is_float(s.dtype) && !core_.is_inference(index) && !s.counts_apart;
  if (!wanted || !born || core_.is_late(s.value) || core_.in_branch()) throw GraphBreak("a tensor is asked to require a gradient, or not to", kRequireHint);
  s.leaf = s.requires_grad = true;
  core_.stand_ins.storage_of(index).requires_grad = true;
}

/// What was computed from it before stays what it was: it depends on the input where that required grad when the call began, and later values on roots.
void History::ask_of_input(Index index, bool wanted) {
  StandIn& s = core_.stand_ins[index];
  const bool plain = s.kind == TensorKind::torch && is_float(s.dtype) && !s.crossed && !core_.is_inference(index) && core_.stand_ins.storage_of(index).version == 0;
  if (!plain || core_.in_branch() || is_view(index) || inputs_.freezes() || !checked(PyObject_GetAttrString(inputs_.object(*s.input), "is_leaf")).is(Py_True))
    throw GraphBreak("a tensor that is older than the call is asked to require a gradient, or not to", kRequireHint);
  const auto is_view_without = [&](const StandIn& other) { return other.storage == s.storage && &other != &s && !other.requires_grad && other.detached == Detached::no; };
  if (wanted && std::ranges::any_of(core_.stand_ins, is_view_without)) throw GraphBreak("a tensor of which there are views is asked to require a gradient", kRequireHint);  // torch says that they do, too
  s.requires_grad = wanted;
  ask_storages_anew();
  if (std::ranges::find(asked_inputs_, index) == asked_inputs_.end()) asked_inputs_.push_back(index);
}

bool History::is_view(Index index) const {
  const StandIn& s = core_.stand_ins[index];
  return s.viewed || (s.input && checked(PyObject_CallMethod(inputs_.object(*s.input), "_is_view", nullptr)).is(Py_True));
}

std::vector<ir::ValueId> History::values_of_leaf(Index leaf) const {
  const auto found = roots_.find(leaf);
  std::vector<ir::ValueId> values = found == roots_.end() ? std::vector<ir::ValueId>() : found->second.roots;
  if (const auto input = core_.stand_ins[leaf].input; input && required_before(*input)) values.push_back(core_.graph.inputs()[*input]);
  return values;
}

void History::forget(std::span<const Index> leaves, std::span<const Index> others) {
  for (Index index : others)
    if (core_.stand_ins.storage_of(index).version > 0 || core_.stand_ins[index].viewed) throw GraphBreak("a transform of torch.func is applied to what writes its arguments, or gives views");
  never_seen_.insert(others.begin(), others.end());
  for (Index leaf : leaves) {
    for (const AppliedFunction& function : functions_)
      for (ir::ValueId root : values_of_leaf(leaf))
        if (std::ranges::any_of(function.values, [&](ir::ValueId value) { return is_on(value, root); })) throw GraphBreak("a torch.autograd.Function is applied where a transform of torch.func differentiates");
    forgotten_[leaf].roots = std::move(roots_[leaf]);
    roots_.erase(leaf);
    never_seen_.insert(leaf);
    core_.stand_ins[leaf].leaf = core_.stand_ins[leaf].requires_grad = false;
  }
  look_anew();
  for (Index index = 0; index < core_.stand_ins.size(); ++index) {
    StandIn& s = core_.stand_ins[index];
    if (!s.requires_grad || s.input || s.leaf || depends(s.value)) continue;
    s.requires_grad = false;
    if (!leaves.empty()) forgotten_[leaves.front()].others.push_back(index);
  }
  ask_storages_anew();
}

void History::remember(std::span<const Index> leaves) {
  for (Index leaf : leaves) {
    const auto known = forgotten_.find(leaf);
    core_.stand_ins[leaf].leaf = core_.stand_ins[leaf].requires_grad = true;
    for (Index index : known->second.others) core_.stand_ins[index].requires_grad = true;
    roots_[leaf] = std::move(known->second.roots);
    forgotten_.erase(known);
  }
  look_anew();
  ask_storages_anew();
}

/// Forgets which values depend on an input that requires grad, but for what was made a root.
void History::look_anew() {
  std::ranges::fill(depends_, -1);
  looked_at_ = 0;
  for (const auto& [leaf, roots] : roots_)
    for (ir::ValueId root : roots.roots) depends_[root.value] = 1;
  for (const AppliedFunction& function : functions_)
    for (ir::ValueId root : function.roots) depends_[root.value] = 1;
}

void History::ask_storages_anew() {
  for (Index index = 0; index < core_.stand_ins.size(); ++index) core_.stand_ins.storage_of(index).requires_grad = false;
  for (Index index = 0; index < core_.stand_ins.size(); ++index) core_.stand_ins.storage_of(index).requires_grad |= core_.stand_ins[index].requires_grad;
}

bool History::is_on_seen_roots(ir::ValueId value) const {
  std::vector<ir::ValueId> all;
  for (const auto& [leaf, roots] : roots_)
    if (core_.stand_ins[leaf].input || with_gradient_.contains(leaf)) all.insert(all.end(), roots.roots.begin(), roots.roots.end());
  for (const AppliedFunction& function : functions_) all.insert(all.end(), function.roots.begin(), function.roots.end());
  return std::ranges::find(all, value) != all.end() || !rewrite::nodes_between(core_.graph, {{value}}, all).empty();
}

bool History::has_node(PyObject* stand_in) const {
  const auto index = core_.stand_ins.find(stand_in);
  return index && core_.stand_ins[*index].requires_grad && !core_.stand_ins[*index].input && !core_.stand_ins[*index].leaf;
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
      for (ir::ValueId result : node.results) depends_[result.value] = any && can_require_gradient(core_.graph.type(result).dtype);
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
  return v.kind == ir::ValueKind::input && required_before(v.index);
}

ir::ValueId History::operand(Index index, ir::ValueId value) {
  const StandIn& s = core_.stand_ins[index];
  if (!tracking_) return value;
  if (!s.requires_grad) return cut(value);
  const bool computed = s.leaf || (s.input && (core_.stand_ins.storage_of(index).version > 0 || !required_before(*s.input)));
  return computed ? root(index, value) : value;
}

ir::ValueId History::root(Index leaf, ir::ValueId value) {
  Roots& known = roots_[leaf];
  if (const auto at = std::ranges::find(known.of, value); at != known.of.end()) return known.roots[at - known.of.begin()];
  known.of.push_back(value);
  known.roots.push_back(new_root(value));
  return known.roots.back();
}

/// What is computed from it is differentiated up to it.
ir::ValueId History::new_root(ir::ValueId value) {
  const ir::ValueId root = core_.builder.one("detach", {value});
  depends_.resize(std::max<std::size_t>(depends_.size(), core_.graph.value_capacity()), -1);
  depends_[root.value] = 1;
  return root;
}

void History::apply(AppliedFunction function, bool views) {
  make_own(function, views);
  functions_.push_back(std::move(function));
}

void History::make_own(AppliedFunction& function, bool views) {
  if (!wanted_) throw GraphBreak("a torch.autograd.Function is applied to a tensor that requires grad", kGradHint);
  if (core_.in_branch()) throw GraphBreak("a torch.autograd.Function in a branch of a control op");
  for (Index index : function.inputs) {
    require_tracked({&index, 1});
    const Scope scope(*this, true);
    function.values.push_back(operand(index, core_.present.of(index)));
  }
  for (Index index : function.outputs) {
    StandIn& s = core_.stand_ins[index];
    const bool shares = s.requires_grad || core_.stand_ins.storage_of(index).requires_grad;
    if (s.input || s.crossed || s.detached != Detached::no || s.counts_apart || (shares && !s.viewed) || function_views_.contains(index) || core_.is_late(s.value) || core_.in_late_memory(index))
      throw GraphBreak("a torch.autograd.Function gives a tensor that is not its own");
    s.value = new_root(core_.present.of(index));
    s.requires_grad = core_.stand_ins.storage_of(index).requires_grad = true;
    s.one_of_several |= views || s.viewed;
    s.untracked = false;
    if (s.viewed) function_views_[index] = view_versions_[index] = core_.stand_ins.storage_of(index).version;
    function.roots.push_back(s.value);
  }
  for (auto& [index, version] : function.saved) version = core_.stand_ins.storage_of(index).version;
}

void History::end_own(const AppliedFunction& function, std::span<const ir::ValueId> results) {
  AppliedFunction own = function;
  own.roots.assign(results.begin(), results.end());
  for (std::size_t k = 0; k < own.outputs.size(); ++k) core_.stand_ins[own.outputs[k]].value = own.roots[k];
  for (const auto& [index, version] : own.saved) kept_.insert(core_.stand_ins.owner(index));
  own_.push_back(std::move(own));
}

void History::track(Index index) {
  core_.stand_ins[index].requires_grad = core_.stand_ins.storage_of(index).requires_grad = true;
  depends_.resize(std::max<std::size_t>(depends_.size(), core_.graph.value_capacity()), -1);
  depends_[core_.stand_ins[index].value.value] = 1;
}

bool History::is_behind_own_gradient(ir::ValueId value) const {
  return std::ranges::any_of(own_, [&](const AppliedFunction& function) { return std::ranges::any_of(function.roots, [&](ir::ValueId root) { return is_on(value, root); }); });
}

std::optional<History::Index> History::function_view(Index index) const {
  for (auto at = std::optional(index); at; at = core_.stand_ins[*at].viewed) {
    if (core_.stand_ins[*at].detached != Detached::no) return std::nullopt;
    if (function_views_.contains(*at)) return at;
  }
  return std::nullopt;
}

void History::require_view_unwritten(Index index) const {
  const auto view = function_view(index);
  if (view && core_.stand_ins.storage_of(*view).version != function_views_.at(*view)) throw GraphBreak("a view that a torch.autograd.Function gave, after a write to its memory");
}

bool History::is_written(const AppliedFunction& function) const {
  return std::ranges::any_of(function.saved, [&](const auto& saved) { return core_.stand_ins.storage_of(saved.first).version != saved.second; });
}

void History::require_unwritten(const AppliedFunction& function) const {
  if (is_written(function)) throw GraphBreak("a tensor was written that the backward of a torch.autograd.Function reads");
}

void History::require_own_unwritten(ir::ValueId value) const {
  for (const AppliedFunction& function : own_)
    if (is_written(function) && std::ranges::any_of(function.roots, [&](ir::ValueId root) { return is_on(value, root); }))
      throw Unbuildable(core_.stand_ins[function.outputs.front()].object.get(), "a tensor was written that the backward of a torch.autograd.Function reads");
}

void History::require_not_kept_by_function(Index leaving) const {
  const auto shares_memory = [&](Index kept) { return &core_.stand_ins.storage_of(kept) == &core_.stand_ins.storage_of(leaving); };
  for (const AppliedFunction& function : own_)
    if (std::ranges::any_of(function.by_itself, shares_memory))
      throw Unbuildable(core_.stand_ins[function.outputs.front()].object.get(), "a tensor leaves the graph that a torch.autograd.Function keeps as an attribute of ctx, whose backward reads it as it is then");
}

/// Whether something that torch would differentiate was computed from a leaf, and no walk has been through it for the last time.
bool History::are_gradients_to_come(Index leaf) {
  const std::vector<ir::ValueId> values = values_of_leaf(leaf);
  const auto reads = [&](const ir::Node& node) { return std::ranges::any_of(node.operands, [&](ir::ValueId v) { return std::ranges::find(values, v) != values.end(); }); };
  return std::ranges::any_of(core_.graph.nodes(), [&](ir::NodeId id) { return to_come_.contains(id.value) && core_.graph.node(id).op != "detach" && reads(core_.graph.node(id)); });
}

bool History::is_on(ir::ValueId value, ir::ValueId root) const { return value == root || !rewrite::nodes_between(core_.graph, {{value}}, {{root}}).empty(); }

ir::ValueId History::cut(ir::ValueId value) { return depends(value) ? core_.builder.one("detach", {value}) : value; }

std::vector<std::uint32_t> History::loose_inputs() const {
  std::vector<std::uint32_t> loose;
  for (std::uint32_t input = 0; input < inputs_.stand_ins().size(); ++input)
    if (const Index owner = core_.stand_ins.owner(inputs_.stand_ins()[input]); core_.stand_ins[owner].device.is_host() && !kept_.contains(owner)) loose.push_back(input);
  return loose;
}

void History::note_call(KeptByTorch::Call call, Index first, std::size_t first_node) {
  note_tracked(first_node);
  note_results(call.results.get(), first);
  for (auto index = first; index < core_.stand_ins.size(); ++index) give_value_of_its_own(index, first_node);

  const bool gives_nothing = first == core_.stand_ins.size();
  if (gives_nothing || std::any_of(core_.stand_ins.begin() + first, core_.stand_ins.end(), [](const StandIn& s) { return s.requires_grad; }))
    for (const KeptByTorch::Operand& operand : call.operands)
      if (call.keeps || !can_require_gradient(core_.stand_ins[operand.index].dtype)) kept_.insert(core_.stand_ins.owner(operand.index));
  if (call.keeps) writes_before_kept_ = core_.stand_ins.written().size();
  kept_by_torch_.note_call(std::move(call), first, first_node);
}

void History::require_kept_unwritten(std::span<const ir::ValueId> ends, std::span<const ir::ValueId> wanted) {
  if (!kept_by_torch_.is_any_written()) return;
  const std::vector<ir::NodeId> nodes = rewrite::nodes_between(core_.graph, ends, wanted);
  std::vector<bool> may_have(core_.graph.value_capacity());
  for (ir::NodeId id : nodes)
    for (ir::ValueId v : core_.graph.node(id).operands) may_have[v.value] = depends(v);
  kept_by_torch_.require_unwritten(nodes, may_have);
}

/// torch has a node for a tensor that has the elements of another one: what is computed from it is computed from that node. So has each of several views
/// that one call gives: gradients end at one of them while they go through others.
void History::give_value_of_its_own(Index index, std::size_t first_node) {
  StandIn& s = core_.stand_ins[index];
  if (!s.requires_grad || s.kind != TensorKind::torch || s.detached != Detached::no || core_.is_late(s.value)) return;
  const ir::Value& value = core_.graph.value(s.value);
  const auto made = core_.graph.nodes().subspan(std::min(first_node, core_.graph.nodes().size()));
  const bool is_new = value.kind == ir::ValueKind::result && std::ranges::find(made, value.node) != made.end();
  if (is_new && !(s.viewed && core_.graph.node(value.node).results.size() > 1)) return;
  const ir::ValueId before = s.value;
  s.value = s.viewed ? core_.builder.one("reshape", {before}, {{"shape", core_.graph.type(before).shape}}) : core_.builder.one("clone", {before});
  if (s.viewed && s.path) s.path->push_back({core_.graph.value(s.value).node, 0});
}

void History::note_tracked(std::size_t first_node) {
  for (ir::NodeId id : core_.graph.nodes().subspan(std::min(first_node, core_.graph.nodes().size()))) to_come_.insert(id.value);
}

void History::move_value(ir::ValueId from, ir::ValueId to) {
  for (Index index = 0; index < core_.stand_ins.size(); ++index)
    if (core_.stand_ins[index].value == from) core_.stand_ins[index].value = to;
}

void History::note_results(PyObject* results, Index first) {
  if (PyTuple_Check(results) || PyList_Check(results)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(results); ++i) note_results(PySequence_Fast_GET_ITEM(results, i), first);
    return;
  }
  const auto index = core_.stand_ins.find(results);
  if (!index || *index < first) return;
  const ir::ValueId value = core_.present.of(*index);
  StandIn& s = core_.stand_ins[*index];
  if (s.kind == TensorKind::torch && s.detached == Detached::no && can_require_gradient(s.dtype)) s.requires_grad = depends(value);
  if (s.requires_grad && is_complex(s.dtype) && is_of_library(core_.graph, value)) throw GraphBreak("complex numbers that require grad", kComplexGradHint);
  core_.stand_ins.storage_of(*index).requires_grad |= s.requires_grad;
  if (s.viewed) view_versions_[*index] = core_.stand_ins.storage_of(*index).version;
}

void History::require_writable(Index target) {
  const bool any = core_.stand_ins.storage_of(target).requires_grad;
  if (core_.stand_ins[target].counts_apart && any) {  // torch does not see it: gradients to come would be those of what was written
    const Index owner = core_.stand_ins.owner(target);
    if (tracking_ || !(core_.stand_ins[owner].input || core_.stand_ins[owner].leaf) || are_gradients_to_come(owner)) throw GraphBreak("a write through `.data`, which torch does not count", "write to the tensor itself under torch.no_grad()");
    return;
  }
  if (!any && !tracking_) return;
  const bool tracks = tracking_ && core_.stand_ins[target].kind == TensorKind::torch;
  if (tracks && core_.stand_ins[target].one_of_several) throw GraphBreak("a write through one of several views that a call gave, which torch refuses");
  if (!any) {  // it becomes a part of the autograd graph
    if (is_input_memory(target)) throw GraphBreak("a write to an input that requires no grad, of what does");
    if (depends(core_.present.of(core_.stand_ins.owner(target)))) throw GraphBreak("a write with grad mode on, to a tensor that was made without");
    return;
  }
  if (!torch_state().value_or(core_.state).grad_enabled()) {
    if (!is_input_memory(target) && !is_leaf_memory(target)) throw GraphBreak("a write without grad mode, to a tensor that requires grad");
    return;
  }
  const StandIn& s = core_.stand_ins[target];
  if (is_input_memory(target) || is_leaf_memory(target) || !s.requires_grad || s.untracked) throw GraphBreak("a write to a tensor that requires grad, or that shares its memory");
}

ir::ValueId History::written_over(ir::ValueId before, ir::ValueId after, std::size_t first_node) {
  if (!tracking_ || before == after || !depends(before)) return after;
  const auto reads = [&](ir::NodeId id) { return std::ranges::find(core_.graph.node(id).operands, before) != core_.graph.node(id).operands.end(); };
  if (std::ranges::any_of(core_.graph.nodes().subspan(std::min(first_node, core_.graph.nodes().size())), reads)) return after;
  return rewrite::never_chosen(core_.builder, before, after);
}

void History::expand_from(std::size_t first_node) {
  rewrite::expand_last(core_.graph, first_node, [this](ir::ValueId from, ir::ValueId to) { move_value(from, to); });
}

std::vector<History::Index> History::unread(std::span<const Index> operands, Index first, std::size_t first_node) const {
  std::unordered_set<std::uint32_t> read;
  for (ir::NodeId id : core_.graph.nodes().subspan(std::min(first_node, core_.graph.nodes().size())))
    for (ir::ValueId v : core_.graph.node(id).operands) read.insert(v.value);
  for (Index index = first; index < core_.stand_ins.size(); ++index) read.insert(core_.stand_ins[index].value.value);
  std::vector<Index> unread;
  for (Index index : operands) {
    const StandIn& s = core_.stand_ins[index];
    if (!s.requires_grad || !is_float(s.dtype) || core_.is_late(s.value)) continue;
    std::vector<ir::ValueId> names{s.value};
    if (s.leaf || s.input) names = values_of_leaf(index);
    if (std::ranges::none_of(names, [&](ir::ValueId v) { return read.contains(v.value); })) unread.push_back(index);
  }
  return unread;
}

void History::go_on_through(std::span<const Index> unread, Index first) {
  for (Index index = first; index < core_.stand_ins.size(); ++index) {
    StandIn& s = core_.stand_ins[index];
    if (s.kind != TensorKind::torch || s.viewed || !is_float(s.dtype) || core_.is_late(s.value)) continue;
    for (Index through : unread) {
      const ir::ValueId value = operand(through, core_.present.of(through));
      ir::Shape dims;
      for (std::size_t d = 0; d < core_.graph.type(value).shape.size(); ++d) dims.push_back(ir::Dim(static_cast<std::int64_t>(d)));
      core_.builder.on(core_.graph.type(value).device);
      const ir::ValueId sum = core_.builder.one("sum", {value}, {{"dim", dims}, {"dtype", core_.graph.type(value).dtype}, {"keepdim", false}});
      s.value = rewrite::never_chosen(core_.builder, core_.builder.cast(sum, s.dtype), s.value);
    }
  }
}

void History::note_write(Index target) {
  if (!tracking_) return;
  if (!can_require_gradient(core_.stand_ins[target].dtype)) return;
  if (is_complex(core_.stand_ins[target].dtype)) throw GraphBreak("complex numbers that require grad", kComplexGradHint);
  core_.stand_ins.storage_of(target).requires_grad = true;
  for (Index index = 0; index < core_.stand_ins.size(); ++index) {
    StandIn& s = core_.stand_ins[index];
    if (s.storage == core_.stand_ins[target].storage && s.kind == TensorKind::torch && s.detached == Detached::no && !s.counts_apart) s.requires_grad = true;
  }
}

}  // namespace tenon::python
