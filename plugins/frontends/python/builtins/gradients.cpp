#include "python/builtins/gradients.h"

#include "python/builtins/answers.h"
#include "python/evaluator/evaluator.h"
#include "python/heap/held_by_contexts.h"
#include "python/objects/imported.h"

namespace tenon::python {

std::optional<Ref> run_backward(Evaluator& evaluator, Arguments arguments) {
  return call_in_python(evaluator, "run_backward", std::move(arguments), "gradients are computed that are to have gradients, and are put into `.grad`");
}

namespace {

std::vector<PyObject*> items_of(Evaluator& evaluator, PyObject* tuple, std::vector<Ref>& held) {
  std::vector<PyObject*> items;
  for (Ref& item : evaluator.iteration().items_of(tuple)) items.push_back(held.emplace_back(std::move(item)).get());
  return items;
}

/// A gradient as an item of a tuple.
PyObject* item_of(Evaluator& evaluator, const Ref& gradient) {
  if (gradient) evaluator.heap().adopt(gradient);
  return gradient ? gradient.get() : Py_None;
}

/// (pairs of tensor and gradient; of functions the number, the outputs' gradients and the context; of leaves, where one has hooks, the turn and whether it is that; gradients
/// without copies, and along which dimensions)
Ref as_python(Evaluator& evaluator, const Recorder::Walked& walked) {
  Heap& heap = evaluator.heap();
  Ref pairs = checked(PyList_New(0)), functions = checked(PyList_New(0));
  for (const Recorder::Gradient& found : walked.gradients)
    checked(PyList_Append(pairs.get(), heap.born(checked(PyTuple_Pack(2, found.of.get(), item_of(evaluator, found.gradient)))).get()));
  Ref turns = checked(PyList_New(0));
  for (const Recorder::Gradient& found : walked.gradients)
    if (found.turn) checked(PyList_Append(turns.get(), heap.born(checked(Py_BuildValue("OLO", found.of.get(), static_cast<long long>(*found.turn), found.hooked ? Py_True : Py_False))).get()));
  for (const Recorder::FunctionGradients& of : walked.functions) {
    Ref gradients = checked(PyList_New(0));
    for (const Ref& gradient : of.gradients) checked(PyList_Append(gradients.get(), item_of(evaluator, gradient)));
    Ref number = checked(PyLong_FromSize_t(of.function));
    checked(PyList_Append(functions.get(), heap.born(checked(PyTuple_Pack(3, number.get(), heap.born(gradients).get(), of.context.get()))).get()));
  }
  Ref spread = checked(PyList_New(0));
  for (const auto& [gradient, dims] : walked.spread) {
    Ref along = checked(PyTuple_New(static_cast<Py_ssize_t>(dims.size())));
    for (std::size_t i = 0; i < dims.size(); ++i) PyTuple_SET_ITEM(along.get(), static_cast<Py_ssize_t>(i), checked(PyLong_FromSize_t(dims[i])).release());
    checked(PyList_Append(spread.get(), heap.born(checked(PyTuple_Pack(2, item_of(evaluator, gradient), heap.born(along).get()))).get()));
  }
  return heap.born(checked(PyTuple_Pack(4, heap.born(pairs).get(), heap.born(functions).get(), heap.born(turns).get(), heap.born(spread).get())));
}

}  // namespace

std::optional<Ref> walk_back(Evaluator& evaluator, Arguments arguments) {
  std::vector<Ref> held;
  Recorder::GradientWalk walk;
  const bool from_function = PyLong_CheckExact(arguments[0]);
  if (!from_function) walk.from = items_of(evaluator, arguments[0], held);
  walk.gradients = items_of(evaluator, arguments[1], held);
  walk.keeps_graph = evaluator.operators().truth(arguments[2]);
  walk.creates_graph = evaluator.operators().truth(arguments[3]);
  walk.to = items_of(evaluator, arguments[4], held);
  walk.may_miss = evaluator.operators().truth(arguments[5]);
  walk.has_new_hooks = [&](PyObject* leaf) { return evaluator.heap().hooks_of(leaf, false) || evaluator.heap().hooks_of(leaf, true); };
  evaluator.mark_position();
  Recorder& recorder = evaluator.recorder();
  GuardSet& guards = evaluator.heap().guards();
  return as_python(evaluator, from_function ? recorder.walk_behind(PyLong_AsSize_t(arguments[0]), walk, guards) : recorder.walk(walk, guards));
}

std::optional<Ref> track_function(Evaluator& evaluator, Arguments arguments) {
  std::vector<Ref> held;
  const std::vector<PyObject*> inputs = items_of(evaluator, arguments[1], held), outputs = items_of(evaluator, arguments[2], held),
                               saved = items_of(evaluator, arguments[3], held);
  evaluator.mark_position();
  evaluator.recorder().apply_function(arguments[0], inputs, outputs, saved, arguments.values.size() > 4 && arguments[4] == Py_True);
  return Ref::borrow(Py_None);
}

std::optional<Ref> functions_may_leave(Evaluator& evaluator, Arguments) { return Ref::borrow(evaluator.recorder().functions_may_leave() ? Py_True : Py_False); }

namespace {

/// What `backward` of the program's gives. What it reads must be the same when gradients are computed.
Ref gradients_by_program(Evaluator& evaluator, PyObject* function, Arguments arguments, PyObject* cls) {
  const GuardSet::ReadAgain read = evaluator.heap().read_again_by(cls);
  Ref found = evaluator.call_now(function, std::move(arguments));
  (void)evaluator.heap().guards().read_again();  // here, where the graph may break
  return found;
}

/// The gradients of the inputs as the program computes them, or a function of the library's. Throws GraphBreak where it does more than that.
std::vector<Ref> way_back(Evaluator& evaluator, PyObject* applied, bool again) {
  Heap& heap = evaluator.heap();
  Recorder& recorder = evaluator.recorder();
  Ref given = checked(PyList_New(0));
  for (const Ref& tangent : recorder.begin_way_back(again)) {
    heap.adopt(tangent);
    checked(PyList_Append(given.get(), tangent.get()));
  }
  heap.born(given);
  const std::size_t journalled = heap.journal().size();
  const Recorder::Progress before = recorder.progress();
  const Heap::NotedWrites written(heap);
  Ref function = checked(PyObject_GetAttrString(checked(imported("tenon._hooks")).get(), "way_back"));
  Arguments arguments;
  for (PyObject* argument : {applied, given.get(), again ? Py_True : Py_False}) arguments.values.push_back(Ref::borrow(argument));
  const Ref cls = checked(PyObject_GetAttrString(applied, "cls"));
  Ref found = cls.is(Py_None) ? evaluator.call_now(function.get(), std::move(arguments)) : gradients_by_program(evaluator, function.get(), std::move(arguments), cls.get());
  if (found.is(Py_None)) throw GraphBreak("the backward of a torch.autograd.Function raises an exception, or gives what is no gradient");
  const Recorder::Deeds deeds = recorder.deeds_since(before, {});
  if (written.any() || heap.journal().size() != journalled || deeds.writes || deeds.draws) throw GraphBreak("the backward of a torch.autograd.Function does more than compute");
  return evaluator.iteration().items_of(found.get());
}

}  // namespace

std::optional<Ref> track_leaving(Evaluator& evaluator, Arguments arguments) {
  std::vector<Ref> held;
  const std::vector<PyObject*> inputs = items_of(evaluator, arguments[1], held), outputs = items_of(evaluator, arguments[2], held);
  std::vector<PyObject*> kept = items_of(evaluator, arguments[3], held);
  std::vector<PyObject*> by_itself;
  if (arguments.values.size() > 7) {
    HeldByContext own = held_by_context(evaluator.heap(), checked(PyObject_GetAttrString(arguments[0], "ctx")).get(), items_of(evaluator, arguments[7], held));
    by_itself = std::move(own.tensors);
    kept.insert(kept.end(), by_itself.begin(), by_itself.end());
    evaluator.heap().hold_by_context(std::move(own.objects), Ref::borrow(outputs.at(0)));
  }
  const bool keeps = arguments[4] == Py_True, once = arguments[5] == Py_True;
  const std::string absent = PyUnicode_AsUTF8(arguments[6]);
  evaluator.mark_position();
  Recorder& recorder = evaluator.recorder();
  recorder.begin_function(inputs, outputs, kept, by_itself);
  std::vector<PyObject*> gradients;
  const std::vector<Ref> found = way_back(evaluator, arguments[0], !once && !recorder.is_in_another_function());
  for (const Ref& gradient : found) gradients.push_back(gradient.get());
  recorder.end_way_back(gradients);
  recorder.end_function(keeps, once, absent);
  if (!by_itself.empty()) evaluator.heap().guards().add_keeper(checked(PyObject_GetAttrString(arguments[0], "cls")).get());
  return Ref::borrow(Py_None);
}

std::optional<Ref> register_hook(Evaluator& evaluator, Arguments arguments) {
  return call_in_python(evaluator, "register_hook", std::move(arguments), "a hook is put on a tensor that requires no grad", "tenon._hooks", kHookHint);
}

std::optional<Ref> register_hook_after(Evaluator& evaluator, Arguments arguments) {
  return call_in_python(evaluator, "register_hook_after", std::move(arguments), "a hook for when a gradient is accumulated is put on what is no leaf", "tenon._hooks", kHookHint);
}

namespace {

/// Arguments as the recorder sees them.
Ref seen(Evaluator& evaluator, PyObject* arguments) {
  evaluator.heap().expose(arguments);
  return evaluator.heap().substitute(arguments);
}

}  // namespace

std::optional<Ref> outlook_on(Evaluator& evaluator, Arguments arguments) {
  std::vector<Ref> held;
  const std::vector<PyObject*> items = items_of(evaluator, arguments[1], held);
  Ref args = checked(PyTuple_New(static_cast<Py_ssize_t>(items.size())));
  for (std::size_t at = 0; at < items.size(); ++at) PyTuple_SET_ITEM(args.get(), static_cast<Py_ssize_t>(at), Py_NewRef(items[at]));
  Ref found = evaluator.recorder().outlook_on(arguments[0], seen(evaluator, args.get()).get(), seen(evaluator, arguments[2]).get());
  if (!found) return Ref::borrow(Py_None);
  for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(found.get()); ++at) evaluator.heap().born(Ref::borrow(PyTuple_GET_ITEM(found.get(), at)));
  return evaluator.heap().born(found);
}

std::optional<Ref> keep_next_run(Evaluator& evaluator, Arguments arguments) {
  Ref keeper = checked(PyObject_GetAttrString(checked(imported("tenon._kept_runs")).get(), "Keeper"));
  evaluator.recorder().keep_next_run(checked(PyObject_CallFunctionObjArgs(keeper.get(), arguments[0], arguments[1], arguments[2], nullptr)));
  return Ref::borrow(Py_None);
}

std::optional<Ref> kept_run(Evaluator& evaluator, Arguments) { return evaluator.heap().adopt(evaluator.recorder().kept_run()); }

std::optional<Ref> gradient_call(Evaluator& evaluator, Arguments arguments) {
  std::vector<Ref> held;
  const std::vector<PyObject*> of = items_of(evaluator, arguments[2], held);
  evaluator.mark_position();
  Ref gradients = checked(PyList_New(0));
  for (const Ref& gradient : evaluator.recorder().gradients_by(arguments[0], seen(evaluator, arguments[1]).get(), of, arguments[3] == Py_True)) {
    evaluator.heap().adopt(gradient);
    checked(PyList_Append(gradients.get(), gradient.get()));
  }
  return evaluator.heap().born(gradients);
}

std::optional<Ref> apply_on_tensors(Evaluator& evaluator, Arguments arguments) {
  return call_in_python(evaluator, "apply_on_tensors", std::move(arguments), "a module with backward hooks gives or takes nothing that requires grad", "tenon._hooks");
}

std::optional<Ref> track_hooks(Evaluator& evaluator, Arguments arguments) {
  std::vector<Ref> held;
  const auto retains = arguments.values.size() > 2 ? std::optional(arguments[2] == Py_True) : std::nullopt;
  return evaluator.recorder().hook(arguments[0], items_of(evaluator, arguments[1], held), retains);
}

namespace {

Ref transformed(Evaluator& evaluator, const char* name, Arguments arguments) {
  return call_in_python(evaluator, name, std::move(arguments), kLeftToTorch, "tenon._gradient_transforms");
}

}  // namespace

std::optional<Ref> transform_by_grad(Evaluator& evaluator, Arguments arguments) { return transformed(evaluator, "grad", std::move(arguments)); }

std::optional<Ref> transform_by_grad_and_value(Evaluator& evaluator, Arguments arguments) { return transformed(evaluator, "grad_and_value", std::move(arguments)); }

std::optional<Ref> transform_by_vjp(Evaluator& evaluator, Arguments arguments) { return transformed(evaluator, "vjp", std::move(arguments)); }

std::optional<Ref> transform_by_jacrev(Evaluator& evaluator, PyObject* function, Arguments arguments) {
  if (arguments.named() != 0) throw GraphBreak(kLeftToTorch);
  arguments.values.insert(arguments.values.begin(), Ref::borrow(function));
  return transformed(evaluator, "jacobian", std::move(arguments));
}

std::optional<Ref> forget_leaves(Evaluator& evaluator, Arguments arguments) {
  std::vector<Ref> held;
  const std::vector<PyObject*> leaves = items_of(evaluator, arguments[0], held), copies = items_of(evaluator, arguments[1], held);
  evaluator.recorder().forget_leaves(leaves, copies);
  return Ref::borrow(Py_None);
}

std::optional<Ref> remember_leaves(Evaluator& evaluator, Arguments arguments) {
  std::vector<Ref> held;
  evaluator.recorder().remember_leaves(items_of(evaluator, arguments[0], held));
  return Ref::borrow(Py_None);
}

std::optional<Ref> maybe_step(Evaluator& evaluator, Arguments arguments) {
  return call_in_python(evaluator, "maybe_step", std::move(arguments), "whether a step is skipped depends on the gradients");
}

std::optional<Ref> assume(Evaluator& evaluator, Arguments arguments) {
  evaluator.mark_position();
  return Ref::borrow(evaluator.recorder().assume(arguments[0], true) ? Py_True : Py_False);
}

std::optional<Ref> check_and_unscale(Evaluator& evaluator, Arguments& arguments) {
  return call_in_python(evaluator, "check_and_unscale", std::move(arguments), "gradients are unscaled");
}

std::optional<Ref> update_scale(Evaluator& evaluator, Arguments& arguments) {
  return call_in_python(evaluator, "update_scale", std::move(arguments), "a scale is updated");
}

namespace {

Ref stepped(Evaluator& evaluator, const char* name, Arguments& arguments) {
  return call_in_python(evaluator, name, std::move(arguments), "a fused optimizer takes its step with a loss scale", "tenon._fused_steps");
}

}  // namespace

std::optional<Ref> fused_sgd(Evaluator& evaluator, Arguments& arguments) { return stepped(evaluator, "fused_sgd", arguments); }

std::optional<Ref> fused_adam(Evaluator& evaluator, Arguments& arguments) { return stepped(evaluator, "fused_adam", arguments); }

std::optional<Ref> fused_adamw(Evaluator& evaluator, Arguments& arguments) { return stepped(evaluator, "fused_adamw", arguments); }

std::optional<Ref> fused_adagrad(Evaluator& evaluator, Arguments& arguments) { return stepped(evaluator, "fused_adagrad", arguments); }

}  // namespace tenon::python
