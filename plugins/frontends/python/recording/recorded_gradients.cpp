#include "python/recording/recorded_gradients.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/rewrite/differentiate.h"
#include "python/library/torch_library.h"
#include "python/metadata/leaf_check.h"
#include "python/metadata/strides.h"
#include "python/objects/graph_break.h"
#include "python/objects/sequences.h"

namespace tenon::python {
namespace {

std::vector<ir::ValueId> values_of(std::span<const rewrite::Seed> seeds) {
  std::vector<ir::ValueId> values;
  for (const rewrite::Seed& seed : seeds) values.push_back(seed.of);
  return values;
}

ForeignFunction engine() {
  ForeignFunction function;
  function.kind = CallClass::operation;
  function.name = "torch.autograd.grad";
  return function;
}

Ref tuple_of_objects(std::span<PyObject* const> objects) {
  std::vector<Ref> held;
  for (PyObject* object : objects) held.push_back(Ref::borrow(object));
  return tuple_of(held);
}

}  // namespace

/// Inputs that require grad, and leaves that the call has made.
std::vector<RecordedGradients::Index> RecordedGradients::leaves() const {
  std::vector<Index> found;
  for (Index index = 0; index < stand_ins_.size(); ++index)
    if (stand_ins_[index].requires_grad && (stand_ins_[index].input || stand_ins_[index].leaf)) found.push_back(index);
  return found;
}

std::vector<std::int64_t> RecordedGradients::turns() const {
  std::vector<std::int64_t> turns(inputs_.stand_ins().size(), -1);
  for (std::size_t input = 0; input < turns.size(); ++input)
    if (inputs_.spec(static_cast<std::uint32_t>(input)).requires_grad) turns[input] = history_.turn_of_leaf(inputs_.stand_ins()[input]);
  return turns;
}

std::vector<ir::ValueId> RecordedGradients::tracked_values() const {
  std::vector<ir::ValueId> values;
  for (Index leaf : leaves()) std::ranges::copy(history_.values_of_leaf(leaf), std::back_inserter(values));
  for (const History::AppliedFunction& function : history_.functions()) std::ranges::copy(function.roots, std::back_inserter(values));
  return values;
}

/// A gradient that is given is a constant, unless it requires grad.
ir::ValueId RecordedGradients::adjoint(PyObject* gradient, ir::ValueId of, bool tracked) {
  const auto index = stand_ins_.find(gradient);
  if (!index) throw GraphBreak("gradients are computed of a tensor without a gradient of its own");
  const ir::ValueId value = core_.present.of(*index);
  if (graph_.type(of).dtype != graph_.type(value).dtype || graph_.type(of).shape != graph_.type(value).shape || !(graph_.type(of).device == graph_.type(value).device))
    throw GraphBreak("the gradient of a tensor has another shape or dtype");
  const History::Scope scope(history_, true);
  return tracked ? history_.operand(*index, value) : value;
}

std::vector<rewrite::Seed> RecordedGradients::seeds_of(const Recorder::GradientWalk& walk) {
  std::vector<rewrite::Seed> seeds;
  for (std::size_t i = 0; i < walk.from.size(); ++i) {
    const auto from = stand_ins_.find(walk.from[i]);
    if (!from || !stand_ins_[*from].requires_grad || !is_float(stand_ins_[*from].dtype) || stand_ins_[*from].untracked)
      throw GraphBreak("gradients are computed of what requires none, or of complex numbers");
    history_.require_view_unwritten(*from);
    const ir::ValueId of = core_.present.of(*from);
    seeds.push_back({of, adjoint(walk.gradients[i], of, walk.creates_graph)});
  }
  return seeds;
}

/// Whether the program has put hooks on a leaf to which gradients flow. Guarded.
bool RecordedGradients::guard_leaf(Index leaf, PyObject* tensor, GuardSet& guards) {
  const auto free = std::make_shared<LeafCheck>();
  const auto hooked = std::make_shared<HookedLeafCheck>();
  const bool is_free = LeafCheck::is_possible() && free->holds(tensor);
  if (!LeafCheck::is_possible() || (!is_free && !hooked->holds(tensor)))
    throw GraphBreak("gradients flow to a tensor with hooks of its node, or that was computed before the graph began");
  if (is_free) guards.add_value_check(stand_ins_[leaf].source, free);
  else guards.add_value_check(stand_ins_[leaf].source, hooked);
  return !is_free;
}

/// The gradient of a tensor with hooks is what they leave of it where a walk to named tensors ends there, as in torch: where it goes on to others, it is
/// what they are given.
void RecordedGradients::take_behind_hooks(std::vector<Wanted>& wanted) const {
  for (Wanted& w : wanted) {
    const StandIn& s = stand_ins_[w.tensor];
    const History::AppliedFunction* hooks = s.input || s.leaf ? nullptr : history_.hooks_of(w.tensor);
    if (!hooks) continue;
    std::vector<ir::ValueId> others;
    for (const Wanted& other : wanted)
      if (other.tensor != w.tensor) std::ranges::copy(other.values, std::back_inserter(others));
    if (!history_.leads_to(hooks->values.front(), others)) w.values = hooks->values;
  }
}

/// What is on the way from the ends. All leaves there, or what was asked for.
std::vector<RecordedGradients::Wanted> RecordedGradients::wanted_of(const Recorder::GradientWalk& walk, std::span<const rewrite::Seed> seeds, GuardSet& guards) {
  std::vector<Wanted> wanted;
  for (PyObject* object : walk.to) {
    const auto index = stand_ins_.find(object);
    if (!index || !stand_ins_[*index].requires_grad || (stand_ins_[*index].untracked && !stand_ins_[*index].leaf)) throw GraphBreak("a gradient by a tensor that requires none");
    const bool leaf = stand_ins_[*index].input || stand_ins_[*index].leaf;
    wanted.push_back({*index, leaf ? history_.values_of_leaf(*index) : std::vector{core_.present.of(*index)}});
    const auto is_older_name = [&](const StandIn& other) { return other.value == wanted.back().values.front() && other.requires_grad && &other < &stand_ins_[*index]; };
    if (!leaf && std::ranges::any_of(stand_ins_, is_older_name)) throw GraphBreak("a gradient by one of several names of a tensor");
  }
  take_behind_hooks(wanted);
  if (walk.to.empty())
    for (Index leaf : leaves()) wanted.push_back({leaf, history_.values_of_leaf(leaf)});

  std::vector<ir::ValueId> ends = values_of(seeds), sought = tracked_values();
  for (const Wanted& w : wanted) std::ranges::copy(w.values, std::back_inserter(sought));
  std::vector<bool> read(graph_.value_capacity());
  for (ir::ValueId end : ends) read[end.value] = true;
  for (ir::NodeId id : rewrite::nodes_between(graph_, ends, sought))
    for (ir::ValueId v : graph_.node(id).operands) read[v.value] = true;
  const auto is_read = [&](ir::ValueId v) { return read[v.value]; };
  for (Wanted& w : wanted) w.reached = std::ranges::any_of(w.values, is_read);
  if (walk.to.empty()) std::erase_if(wanted, [](const Wanted& w) { return !w.reached; });
  const bool all = history_.functions().empty();  // else more may be behind them
  if (!walk.may_miss && all && std::ranges::any_of(wanted, [](const Wanted& w) { return !w.reached; })) throw GraphBreak("a gradient by a tensor that nothing was computed from");

  for (Index leaf : leaves()) {
    if (std::ranges::none_of(history_.values_of_leaf(leaf), is_read)) continue;
    const auto input = stand_ins_[leaf].input;
    const bool had_hooks = input && guard_leaf(leaf, inputs_.object(*input), guards);
    const bool hooked = had_hooks || (walk.has_new_hooks && walk.has_new_hooks(stand_ins_[leaf].object.get()));
    for (Wanted& w : wanted) w.hooked |= hooked && w.tensor == leaf;
  }
  return wanted;
}

/// Whether torch has let go, after walks, of what it kept for some of the nodes.
bool RecordedGradients::are_spent(const Spent& spent, std::span<const ir::NodeId> nodes) const {
  std::vector<ir::NodeId> reading, others;
  for (ir::NodeId id : nodes)
    if (const auto walked = spent.nodes.find(id.value); walked != spent.nodes.end()) (walked->second ? reading : others).push_back(id);
  return history_.lets_go(reading, others);
}

void RecordedGradients::require_not_spent(std::span<const rewrite::Seed> seeds, std::span<const ir::ValueId> wanted) const {
  const std::vector<ir::ValueId> ends = values_of(seeds);
  if (are_spent(spent_, rewrite::nodes_between(graph_, ends, wanted))) throw GraphBreak("gradients are computed a second time through what was let go");
  for (std::size_t f : spent_.functions)
    for (ir::ValueId root : history_.functions()[f].roots)
      if (std::ranges::any_of(ends, [&](ir::ValueId end) { return history_.is_on(end, root); })) throw GraphBreak("gradients are computed a second time through what was let go");
}

/// What torch does at such tensors is a walk of its own, to all leaves and without gradients of gradients; others it refuses.
void RecordedGradients::require_not_through_to_all_leaves(std::span<const rewrite::Seed> seeds) const {
  for (Index index : history_.through_to_all_leaves())
    for (const rewrite::Seed& seed : seeds)
      if (history_.is_on(seed.of, core_.present.of(index))) throw Unbuildable(stand_ins_[index].object.get(), "gradients of some tensors are computed through a reentrant checkpoint");
}

bool RecordedGradients::guard_leaves_without_hooks(GuardSet& guards) {
  for (Index leaf : leaves()) {
    const auto input = stand_ins_[leaf].input;
    if (!input || !checked(PyObject_GetAttrString(inputs_.object(*input), "is_leaf")).is(Py_True)) continue;
    const auto check = std::make_shared<LeafCheck>();
    if (!LeafCheck::is_possible() || !check->holds(inputs_.object(*input))) return false;
    guards.add_value_check(stand_ins_[leaf].source, check);
  }
  return true;
}

std::vector<std::optional<ir::ValueId>> RecordedGradients::differentiate(const Recorder::GradientWalk& walk, std::span<const rewrite::Seed> seeds,
                                                                         std::span<const ir::ValueId> wanted) {
  const std::size_t first = graph_.nodes().size();
  std::unordered_map<std::uint32_t, bool> walked;
  std::vector<std::optional<ir::ValueId>> gradients;
  try {
    gradients = rewrite::differentiate(graph_, seeds, wanted, {}, [this](ir::ValueId from, ir::ValueId to) { history_.move_value(from, to); }, [&](ir::NodeId node, bool reads) {
      walked.try_emplace(node.value, reads);
      if (!walk.keeps_graph) history_.note_walked(node);
    }, walk.creates_graph);
  } catch (const Exception& failure) {
    const std::vector<ir::NodeId> begun(graph_.nodes().begin() + static_cast<std::ptrdiff_t>(first), graph_.nodes().end());
    graph_.erase_nodes(begun);
    throw GraphBreak(fmt::format("no gradient: {}", failure.what()));
  }
  if (!walk.keeps_graph) walked_.nodes.merge(walked);
  if (walk.creates_graph) {
    rewrite::expand_last(graph_, first, [&](ir::ValueId from, ir::ValueId to) { std::ranges::replace(gradients, std::optional(from), std::optional(to)); });
    history_.note_tracked(first);
  }
  return gradients;
}

/// The gradient as torch's engine gives it: of the tensor's kind, and zeros where what was computed has none. `parts`: by value of the tensor.
ir::ValueId RecordedGradients::of_kind(std::span<const std::optional<ir::ValueId>> parts, const Wanted& wanted) {
  const ir::Type type = graph_.type(wanted.values.front());
  core_.builder.on(type.device);
  std::optional<ir::ValueId> gradient;
  for (const std::optional<ir::ValueId>& part : parts)
    if (part) gradient = gradient ? core_.builder.one("add", {*gradient, *part}) : *part;
  if (!gradient) return core_.builder.one("full", {core_.builder.literal(0.0)}, {{"size", type.shape}, {"dtype", type.dtype}});
  if (graph_.type(*gradient).shape != type.shape) throw GraphBreak("a gradient of another shape than its tensor");
  return core_.builder.cast(*gradient, type.dtype);
}

/// It lies as AccumulateGrad has it: as its tensor where that is dense, else in row-major order.
Ref RecordedGradients::wrap(ir::ValueId gradient, const Wanted& wanted, bool tracked) {
  results_.settle_gaps({{wanted.tensor}});
  const StandIn& of = stand_ins_[wanted.tensor];
  TensorSpec spec;
  spec.dtype = of.dtype;
  spec.type = reinterpret_cast<PyTypeObject*>(known_torch_library()->tensor.get());
  spec.shape = of.shape;
  const bool dense = is_row_major(of.shape, of.strides) || !memory_order(of.shape, of.strides).empty();
  spec.strides = dense ? of.strides : row_major(of.shape);
  const auto first = static_cast<Index>(stand_ins_.size());
  Ref object = stand_ins_[core_.add_fresh(TensorKind::torch, gradient, spec)].object;
  if (tracked) history_.note_results(object.get(), first);
  return object;
}

Recorder::Walked RecordedGradients::walk(const Recorder::GradientWalk& walk, GuardSet& guards) {
  if (!history_.wanted()) throw GraphBreak("gradients are computed", kGradHint);
  if (core_.in_branch()) throw GraphBreak("gradients are computed in a branch of a control op");
  if (core_.state.anomaly) throw GraphBreak("gradients are computed in anomaly mode, which looks at each node of torch's autograd graph");
  core_.walked = true;
  spent_.nodes.merge(walked_.nodes);
  spent_.functions.merge(walked_.functions);
  return walk_from(seeds_of(walk), walk, walk.from, guards);
}

/// torch calls what gave a value with zeros where this gets no gradient.
void RecordedGradients::require_no_function(ir::ValueId value) const {
  for (const History::AppliedFunction& function : history_.functions())
    if (std::ranges::any_of(function.roots, [&](ir::ValueId root) { return history_.is_on(value, root); }))
      throw GraphBreak("the backward of a torch.autograd.Function gives no gradient of what another one gave");
}

Recorder::Walked RecordedGradients::walk_behind(std::size_t function, const Recorder::GradientWalk& walk, GuardSet& guards) {
  const History::AppliedFunction& applied = history_.functions()[function];
  history_.require_unwritten(applied);
  history_.require_retaining_unwritten(applied);
  if (!walk.keeps_graph) walked_.functions.insert(function);
  std::vector<rewrite::Seed> seeds;
  std::vector<PyObject*> from, given;
  for (std::size_t i = 0; i < applied.inputs.size(); ++i) {
    if (walk.gradients[i] == Py_None) {
      require_no_function(applied.values[i]);
      continue;
    }
    seeds.push_back({applied.values[i], adjoint(walk.gradients[i], applied.values[i], walk.creates_graph)});
    from.push_back(stand_ins_[applied.inputs[i]].object.get());
    given.push_back(walk.gradients[i]);
  }
  Recorder::GradientWalk on = walk;
  on.gradients = given;
  return walk_from(seeds, on, from, guards);
}

std::vector<bool> RecordedGradients::functions_on_the_way(const Recorder::GradientWalk& walk, std::span<const Wanted> wanted) const {
  std::vector<ir::ValueId> ends;
  for (const Wanted& w : wanted) std::ranges::copy(w.values, std::back_inserter(ends));
  std::vector<bool> called;
  for (const History::AppliedFunction& function : history_.functions())
    called.push_back(walk.to.empty() || std::ranges::any_of(function.roots, [&](ir::ValueId root) { return history_.leads_to(root, ends); }));
  return called;
}

/// The gradient of a tensor, as the engine gives it: where it is another one's, too, it is not to be written, lies without copies, and is that one's object
/// where nothing was moved.
Ref RecordedGradients::as_handed(HandedGradients& handed, const Wanted& wanted, ir::ValueId gradient, Ref object, bool is_seen, Recorder::Walked& walked) {
  const Index made = stand_ins_.require({{object.get()}}).front();
  const auto source = stand_ins_[made].value == gradient ? handed.source_of(wanted.values.front(), gradient) : std::nullopt;
  if (!source) return object;
  const Index first = is_seen ? handed.first_with(source->gradient, made) : made;
  if (source->shared && is_seen) stand_ins_.storage_of(made).handed_on = true;
  if (first != made && stand_ins_[first].value == gradient && stand_ins_[first].strides == stand_ins_[made].strides) return stand_ins_[first].object;
  const Extents& shape = stand_ins_[made].shape;
  if (!source->spread.empty() && std::ranges::find(shape, 0) == shape.end()) walked.spread.emplace_back(object, source->spread);
  return object;
}

Recorder::Walked RecordedGradients::walk_from(std::span<const rewrite::Seed> seeds, const Recorder::GradientWalk& walk, std::span<PyObject* const> from, GuardSet& guards) {
  const std::size_t first_node = graph_.nodes().size();
  if (!walk.to.empty() || walk.creates_graph) require_not_through_to_all_leaves(seeds);
  std::vector<Wanted> wanted = wanted_of(walk, seeds, guards);
  const std::size_t tensors_wanted = wanted.size();
  const bool any_hooked = std::ranges::any_of(wanted, &Wanted::hooked);
  const std::vector<bool> called = functions_on_the_way(walk, wanted);
  for (const History::AppliedFunction& function : history_.functions())
    for (std::size_t k = 0; k < function.outputs.size(); ++k) wanted.push_back({function.outputs[k], {function.roots[k]}});
  std::vector<ir::ValueId> values;
  for (const Wanted& w : wanted) std::ranges::copy(w.values, std::back_inserter(values));
  require_not_spent(seeds, values);
  history_.require_kept_unwritten(values_of(seeds), values);
  const bool are_seen = !walk.to.empty() || wanted.size() > tensors_wanted || any_hooked;  // as the engine has them
  HandedGradients handed(graph_, values_of(seeds), are_seen ? values : std::vector<ir::ValueId>());
  values.insert(values.end(), handed.asked().begin(), handed.asked().end());
  const std::vector<std::optional<ir::ValueId>> found = differentiate(walk, seeds, values);
  handed.take(std::span(found).last(handed.asked().size()));

  Recorder::Walked walked;
  std::vector<Ref> tensors, results;
  std::span<const std::optional<ir::ValueId>> parts = found;
  const auto next = [&](const Wanted& w, bool reached, bool at_function = false) {
    const auto own = parts.first(w.values.size());
    parts = parts.subspan(w.values.size());
    Ref gradient = reached ? wrap(of_kind(own, w), w, walk.creates_graph) : Ref();
    if (are_seen && gradient && own.size() == 1 && own.front()) gradient = as_handed(handed, w, *own.front(), std::move(gradient), !walk.to.empty() || at_function || w.hooked, walked);
    tensors.push_back(stand_ins_[w.tensor].object);
    results.push_back(gradient ? gradient : Ref::borrow(Py_None));
    return gradient;
  };
  for (std::size_t i = 0; i < tensors_wanted; ++i) {
    Ref gradient = next(wanted[i], wanted[i].reached);
    const auto turn = any_hooked ? std::optional(history_.turn_of_leaf(wanted[i].tensor)) : std::nullopt;
    walked.gradients.push_back({stand_ins_[wanted[i].tensor].object, std::move(gradient), turn, wanted[i].hooked});
  }
  std::size_t at = tensors_wanted;
  for (std::size_t f = 0; f < history_.functions().size(); ++f) {
    Recorder::FunctionGradients of{f, history_.functions()[f].context, {}};
    for (std::size_t k = 0; k < history_.functions()[f].outputs.size(); ++k, ++at) of.gradients.push_back(next(wanted[at], parts.front().has_value(), true));
    if (called[f] && std::ranges::any_of(of.gradients, [](const Ref& g) { return static_cast<bool>(g); })) walked.functions.push_back(std::move(of));
  }
  Ref engine_function = checked(PyObject_GetAttrString(checked(PyObject_GetAttrString(known_torch_library()->module.get(), "autograd")).get(), "grad"));
  Ref args = checked(PyTuple_Pack(3, tuple_of_objects(from).get(), tuple_of(tensors).get(), tuple_of_objects(walk.gradients).get()));
  Ref kwargs = checked(Py_BuildValue("{sOsOsO}", "retain_graph", walk.keeps_graph ? Py_True : Py_False, "create_graph", walk.creates_graph ? Py_True : Py_False,
                                     "allow_unused", walk.may_miss ? Py_True : Py_False));
  trace_.add(engine_function.get(), engine(), args.get(), kwargs.get(), tuple_of(results), first_node);
  return walked;
}

void RecordedGradients::apply_function(PyObject* context, std::span<PyObject* const> inputs, std::span<PyObject* const> outputs, std::span<PyObject* const> saved, bool views) {
  history_.apply(function_of(Ref::borrow(context), inputs, outputs, saved), views);
}

History::AppliedFunction RecordedGradients::function_of(Ref context, std::span<PyObject* const> inputs, std::span<PyObject* const> outputs, std::span<PyObject* const> saved) const {
  History::AppliedFunction function;
  function.context = std::move(context);
  function.inputs = stand_ins_.require(inputs);
  function.outputs = stand_ins_.require(outputs);
  for (PyObject* tensor : saved)
    if (const auto index = stand_ins_.find(tensor)) function.saved.emplace_back(*index, 0);
  return function;
}

void RecordedGradients::require_kept_unwritten(ir::ValueId value) const {
  history_.require_own_unwritten(value);
  if (!core_.walked) history_.require_kept_unwritten({{value}}, tracked_values());
}

std::optional<RecordedGradients::Index> RecordedGradients::unwalked_function(ir::ValueId value) const {
  for (std::size_t f = 0; f < history_.functions().size(); ++f)
    for (std::size_t k = 0; !is_spent_function(f) && k < history_.functions()[f].roots.size(); ++k)
      if (history_.is_on(value, history_.functions()[f].roots[k])) return history_.functions()[f].outputs[k];
  return std::nullopt;
}

bool RecordedGradients::keeps_gradient(PyObject* tensor) const {
  const auto index = stand_ins_.find(tensor);
  return index && stand_ins_[*index].kind == TensorKind::torch && (stand_ins_[*index].input || stand_ins_[*index].leaf || history_.retains_gradient(*index));
}

bool RecordedGradients::take_gradient(PyObject* tensor, PyObject* value) {
  const auto of = stand_ins_.find(tensor), gradient = stand_ins_.find(value);
  if (!of || !gradient || *of == *gradient) return false;
  const StandIn &a = stand_ins_[*of], &b = stand_ins_[*gradient];
  const bool fits = a.kind == TensorKind::torch && b.kind == TensorKind::torch && a.dtype == b.dtype && a.device == b.device &&
                    graph_.type(a.value).shape == graph_.type(b.value).shape && !core_.is_late(b.value);
  if (fits) history_.note_gradient(*of);
  return fits;
}

bool RecordedGradients::is_spent(ir::ValueId value) const {
  const auto through = [&](std::size_t f) { return std::ranges::any_of(history_.functions()[f].roots, [&](ir::ValueId root) { return history_.is_on(value, root); }); };
  const auto any = [&](const Spent& spent) {
    if (std::ranges::any_of(spent.functions, through)) return true;
    return !spent.nodes.empty() && are_spent(spent, rewrite::nodes_between(graph_, {{value}}, tracked_values()));
  };
  return any(spent_) || any(walked_);
}

}  // namespace tenon::python
