// Modes of torch that a program enters and leaves: autocast, and inference mode. They are entered for real while the capture lasts.
// Flags of torch that it reads.
#include "python/builtins/answers.h"
#include "python/builtins/control.h"
#include "python/builtins/handlers.h"
#include "python/evaluator/evaluator.h"
#include "python/objects/imported.h"
#include "python/objects/names.h"

namespace tenon::python {
namespace {

Ref native_module() { return checked(imported("torch._C")); }

void require_given(const Arguments& arguments, std::size_t count, const char* what) {
  if (arguments.named() != 0 || arguments.positional() != count) throw GraphBreak(std::string(what) + " in an old or unusual way");
}

/// Whether the first argument names a device whose autocast entries guard, as that of the CPU; another one must be left as it is.
bool is_guarded(const Arguments& arguments) {
  const auto names = [&](const char* device) { return PyUnicode_Check(arguments[0]) && PyUnicode_CompareWithASCIIString(arguments[0], device) == 0; };
  return names("cpu") || (names("cuda") && PyObject_HasAttrString(native_module().get(), "_cuda_getDeviceCount"));  // a torch with CUDA
}

void call_on_rollback(Evaluator& evaluator, Ref function, Ref argument) {
  evaluator.heap().on_rollback([function = std::move(function), argument = std::move(argument)] {
    Ref done = Ref::steal(argument ? PyObject_CallOneArg(function.get(), argument.get()) : PyObject_CallNoArgs(function.get()));
    if (!done) PyErr_Clear();
  });
}

/// Sets a state by `setter(value)`, where `before` is what it is.
Ref change(Evaluator& evaluator, PyObject* setter, Ref before, PyObject* value) {
  call_on_rollback(evaluator, Ref::borrow(setter), before);
  checked(PyObject_CallOneArg(setter, value));
  evaluator.library_states().set(Ref::borrow(setter), std::move(before), Ref::borrow(value));
  return Ref::borrow(Py_None);
}

/// functools.partial(torch._C.<name>, device): one object for the life of the process, by which the state is known.
PyObject* for_device(const char* name, PyObject* device) {
  static PyObject* const made = checked(PyDict_New()).release();
  Ref function = checked(PyObject_GetAttrString(native_module().get(), name));
  Ref key = checked(PyTuple_Pack(2, function.get(), device));
  if (PyObject* found = PyDict_GetItemWithError(made, key.get())) return found;
  Ref functools = checked(imported("functools"));
  Ref partial = checked(PyObject_CallMethod(functools.get(), "partial", "OO", function.get(), device));
  checked(PyDict_SetItem(made, key.get(), partial.get()));
  return partial.get();
}

/// What torch._C.<getter>(device) gives, for a device that is not guarded: as the program has left it by `setter`, else as it is at each call.
Ref state_of_device(Evaluator& evaluator, PyObject* device, PyObject* setter, const char* getter) {
  if (PyObject* left = evaluator.library_states().now(setter)) return Ref::borrow(left);
  return read_by(evaluator, for_device(getter, device));
}

/// Sets by torch._C.<name>(device, value) what torch._C.<getter>(device) gives. No graph asks for the dtypes of devices that are not guarded; that
/// they cast at all is another state of torch.
Ref change_for_device(Evaluator& evaluator, const Arguments& arguments, const char* name, const char* getter, bool of_any_device) {
  if (!PyUnicode_CheckExact(arguments[0])) throw GraphBreak("autocast of a device that is no plain name is set");
  PyObject* setter = for_device(name, arguments[0]);
  const bool guarded = is_guarded(arguments);
  Ref before = guarded ? checked(PyObject_CallMethod(native_module().get(), getter, "O", arguments[0])) : state_of_device(evaluator, arguments[0], setter, getter);
  if (!guarded && !of_any_device && !before.is(arguments[1])) throw GraphBreak("autocast is changed for a device of which entries do not hold it");
  return guarded || !before.is(arguments[1]) ? change(evaluator, setter, std::move(before), arguments[1]) : Ref::borrow(Py_None);
}

/// How far the program has gone into, or out of, nested autocasts. No graph asks.
PyObject* nesting_setter() {
  static PyObject* const function = checked(PyObject_GetAttrString(checked(imported("tenon._autocast")).get(), "change_nesting")).release();
  return function;
}

long nesting(Evaluator& evaluator) {
  PyObject* state = evaluator.library_states().now(nesting_setter());
  return state ? PyLong_AsLong(state) : 0;
}

Ref change_nesting(Evaluator& evaluator, const char* function, const char* inverse, long by) {
  call_on_rollback(evaluator, checked(PyObject_GetAttrString(native_module().get(), inverse)), {});
  Ref depth = checked(PyObject_CallMethod(native_module().get(), function, nullptr));
  evaluator.library_states().set(Ref::borrow(nesting_setter()), checked(PyLong_FromLong(0)), checked(PyLong_FromLong(nesting(evaluator) + by)));
  return depth;
}

/// Stand-ins have a `__torch_function__` for the capture; no mode is active in one.
bool overrides(Evaluator& evaluator, PyObject* object) {
  if (evaluator.is_stand_in(object) || !evaluator.heap().traits(object).python_class) return false;
  std::optional<Ref> method = evaluator.attributes().find(object, checked(PyUnicode_InternFromString("__torch_function__")).get());
  Ref disabled = checked(PyObject_GetAttrString(native_module().get(), "_disabled_torch_function_impl"));
  Ref enabled = checked(PyObject_CallMethod(native_module().get(), "_is_torch_function_enabled", nullptr));
  return method && !method->is(disabled.get()) && enabled.is(Py_True);
}

}  // namespace

Ref read_by(Evaluator& evaluator, PyObject* reader) {
  evaluator.heap().make_known(reader, evaluator.heap().sources().constant(reader));
  return evaluator.heap().part(SourceKind::called, reader, checked(PyObject_CallNoArgs(reader)).get());
}

Ref read_flag(Evaluator& evaluator, const char* function) {
  return read_by(evaluator, checked(PyObject_GetAttrString(native_module().get(), function)).get());
}

std::optional<Ref> ask_of_card(Evaluator& evaluator, PyObject* function, Arguments arguments) {
  for (const Ref& value : arguments.values)
    if (value.get() != Py_None && !PyBool_Check(value.get()) && !PyLong_CheckExact(value.get())) throw GraphBreak("a card is asked for by what is no number");
  Ref answer = evaluator.calls().call_real(function, arguments);
  if (PyObject_HasAttrString(native_module().get(), "_cuda_getDevice")) read_flag(evaluator, "_cuda_getDevice");
  return PyTuple_Check(answer.get()) ? evaluator.heap().born(std::move(answer)) : answer;
}

Handled overrides_torch_functions(Evaluator& evaluator, Arguments& arguments) {
  for (const Ref& value : arguments.values)
    if (overrides(evaluator, value.get())) return Ref::borrow(Py_True);
  return Ref::borrow(Py_False);
}

Handled any_overrides_torch_functions(Evaluator& evaluator, Arguments& arguments) {
  require_given(arguments, 1, "has_torch_function()");
  Arguments items;
  items.values = evaluator.iteration().items_of(arguments[0]);
  return overrides_torch_functions(evaluator, items);
}

Handled set_autocast_enabled(Evaluator& evaluator, Arguments& arguments) {
  require_given(arguments, 2, "autocast is set");
  return change_for_device(evaluator, arguments, "set_autocast_enabled", "is_autocast_enabled", false);
}

Handled get_autocast_dtype(Evaluator& evaluator, Arguments& arguments) {
  require_given(arguments, 1, "the dtype of autocast is read");
  if (is_guarded(arguments)) return state_read(evaluator, arguments);
  if (!PyUnicode_CheckExact(arguments[0])) throw GraphBreak("the dtype of autocast is read for a device that is no plain name");
  return state_of_device(evaluator, arguments[0], for_device("set_autocast_dtype", arguments[0]), "get_autocast_dtype");
}

Handled set_autocast_dtype(Evaluator& evaluator, Arguments& arguments) {
  require_given(arguments, 2, "the dtype of autocast is set");
  return change_for_device(evaluator, arguments, "set_autocast_dtype", "get_autocast_dtype", true);
}

/// No graph casts a weight twice: whether torch would keep the cast matters to `autocast` itself only, which sets it as it was.
Handled is_autocast_cache_enabled(Evaluator& evaluator, Arguments& arguments) {
  PyObject* module = PyDict_GetItemWithError(evaluator.frame().globals.get(), names().__name__);
  const bool by_autocast = module && PyUnicode_Check(module) && PyUnicode_CompareWithASCIIString(module, "torch.amp.autocast_mode") == 0;
  if (!by_autocast) throw GraphBreak("whether autocast keeps casts is asked for");
  return state_read(evaluator, arguments);
}

Handled set_autocast_cache_enabled(Evaluator& evaluator, Arguments& arguments) {
  require_given(arguments, 1, "the cache of autocast is set");
  static PyObject* const setter = checked(PyObject_GetAttrString(native_module().get(), "set_autocast_cache_enabled")).release();
  return change(evaluator, setter, checked(PyObject_CallMethod(native_module().get(), "is_autocast_cache_enabled", nullptr)), arguments[0]);
}

Handled autocast_increment_nesting(Evaluator& evaluator, Arguments&) {
  return change_nesting(evaluator, "autocast_increment_nesting", "autocast_decrement_nesting", 1);
}

Handled autocast_decrement_nesting(Evaluator& evaluator, Arguments&) {
  return change_nesting(evaluator, "autocast_decrement_nesting", "autocast_increment_nesting", -1);
}

/// Casts that were kept are those of eager execution under an autocast that the graph leaves and did not enter.
Handled clear_autocast_cache(Evaluator& evaluator, Arguments&) {
  if (nesting(evaluator) < 0) evaluator.heap().journal().add(WriteKind::call, {}, checked(PyObject_GetAttrString(native_module().get(), "clear_autocast_cache")));
  return Ref::borrow(Py_None);
}

// ---- inference mode

namespace {

void enter(PyObject* context) { checked(PyObject_CallMethod(context, "__enter__", nullptr)); }
void leave(PyObject* context) { checked(PyObject_CallMethod(context, "__exit__", "OOO", Py_None, Py_None, Py_None)); }

void on_rollback(Evaluator& evaluator, Ref context, void (*undo)(PyObject*)) {
  evaluator.heap().on_rollback([context = std::move(context), undo] {
    try {
      undo(context.get());
    } catch (const std::exception&) {
      PyErr_Clear();
    }
  });
}

}  // namespace

std::optional<Ref> enter_inference_mode(Evaluator& evaluator, Arguments arguments) {
  require_given(arguments, 1, "inference mode is entered");
  static PyObject* const mode = checked(PyUnicode_InternFromString("mode")).release();
  Ref wanted = evaluator.attributes().load(arguments[0], mode);
  Ref context = evaluator.heap().born(checked(PyObject_CallMethod(native_module().get(), "_InferenceMode", "O", wanted.get())));
  enter(context.get());
  on_rollback(evaluator, context, leave);
  evaluator.library_states().enter_mode(arguments.values[0], std::move(context));
  return Ref::borrow(Py_None);
}

std::optional<Ref> leave_inference_mode(Evaluator& evaluator, Arguments arguments) {
  if (arguments.values.empty()) throw GraphBreak("inference mode is left in an unusual way");
  Ref context = evaluator.library_states().leave_mode(arguments[0]);
  if (!context) throw GraphBreak("inference mode is left that was entered before the graph");
  leave(context.get());
  on_rollback(evaluator, context, enter);
  return Ref::borrow(Py_None);
}

}  // namespace tenon::python
