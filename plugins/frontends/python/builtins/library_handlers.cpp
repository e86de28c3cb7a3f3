// C functions of the standard library that need the evaluator, or may be answered only to the module that asks.
#include <fmt/format.h>

#include <string_view>

#include "python/builtins/answers.h"
#include "python/builtins/checkpoints.h"
#include "python/builtins/handlers.h"
#include "python/builtins/table.h"
#include "python/compat/object_layout.h"
#include "python/evaluator/evaluator.h"
#include "python/objects/imported.h"
#include "python/objects/names.h"

namespace tenon::python {
namespace {

void require_count(const Arguments& arguments, std::size_t count, const char* function) {
  if (arguments.named() != 0 || arguments.positional() != count) throw GraphBreak(fmt::format("{}() with {} arguments", function, arguments.values.size()));
}

bool asked_by_module(Evaluator& evaluator, const char* module) {
  PyObject* name = PyDict_GetItemWithError(evaluator.frame().globals.get(), names().__name__);
  return name != nullptr && PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, module) == 0;
}

bool is_plain_number(PyObject* object) { return PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyBool_Check(object) || PyComplex_CheckExact(object); }

/// The object in the cell of a function's free variable, or null.
PyObject* free_variable(PyObject* function, PyObject* name) {
  auto* parts = reinterpret_cast<PyFunctionObject*>(function);
  auto* code = reinterpret_cast<PyCodeObject*>(parts->func_code);
  PyObject* all = compat::local_names(code);
  const Py_ssize_t first = PyTuple_GET_SIZE(all) - code->co_nfreevars;
  for (Py_ssize_t at = 0; at < code->co_nfreevars; ++at)
    if (PyUnicode_Compare(PyTuple_GET_ITEM(all, first + at), name) == 0) return PyCell_GET(PyTuple_GET_ITEM(parts->func_closure, at));
  return nullptr;
}

}  // namespace

Handled builtin_id(Evaluator& evaluator, Arguments& arguments) {
  require_count(arguments, 1, "id");
  Heap& heap = evaluator.heap();
  const SourceId source = heap.source_of(arguments[0]);
  // Arguments are others at each call, but for what a scaler knows of an optimizer.
  const bool is_known = source && (!heap.sources().from_argument(source) || asked_by_module(evaluator, "torch.amp.grad_scaler"));
  if (is_known && !asked_by_module(evaluator, "copy")) {
    if (heap.sources()[source].kind != SourceKind::constant) heap.guards().add(GuardKind::identity, source, arguments[0]);
    return checked(PyLong_FromVoidPtr(arguments[0]));
  }
  if (!asked_by_module(evaluator, "copy")) throw GraphBreak("an object's address is asked for");
  Frame& f = evaluator.frame();
  for (int slot = 0; slot < f.code->local_count(); ++slot) {
    const bool is_memo = PyUnicode_Compare(f.code->local_name(slot), names().memo) == 0;
    if (is_memo && f.locals[slot].object && evaluator.heap().source_of(evaluator.local(f, slot))) throw GraphBreak("copy.deepcopy with a memo that is older than the call");
  }
  evaluator.heap().keep_alive(arguments.values[0]);  // its address stays its own
  Ref address = checked(PyLong_FromVoidPtr(arguments[0]));
  evaluator.heap().raised(address.get());  // of an object of this capture: nothing that outlives it may hold the number
  return address;
}

Handled exc_info(Evaluator& evaluator, Arguments& arguments) {
  require_count(arguments, 0, "exc_info");
  if (!asked_by_module(evaluator, "contextlib")) throw GraphBreak("the exception that is being handled is asked for");
  Ref handled = compat::handled_exception();
  PyObject* type = handled ? reinterpret_cast<PyObject*>(Py_TYPE(handled.get())) : Py_None;
  return evaluator.heap().born(checked(PyTuple_Pack(3, type, handled ? handled.get() : Py_None, Py_None)));
}

Handled handled_exception(Evaluator& evaluator, Arguments& arguments) {
  require_count(arguments, 0, "exception");
  if (!asked_by_module(evaluator, "contextlib")) throw GraphBreak("the exception that is being handled is asked for");
  Ref handled = compat::handled_exception();
  return handled ? std::move(handled) : Ref::borrow(Py_None);
}

Handled os_fspath(Evaluator& evaluator, Arguments& arguments) {
  require_count(arguments, 1, "fspath");
  if (!evaluator.heap().traits(arguments[0]).atom) throw GraphBreak("os.fspath() of an object");
  return std::nullopt;  // call_builtin runs it
}

Handled bind_function(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 2, 3, "__get__");
  if (arguments[1] == Py_None) return arguments.values.size() == 3 && arguments[2] != Py_None ? Handled(arguments.values[0]) : std::nullopt;  // else it raises
  return evaluator.heap().born(checked(PyMethod_New(arguments[0], arguments[1])));
}

/// By the evaluator's addition, item by item, as soon as one is no plain number.
Handled builtin_sum(Evaluator& evaluator, Arguments& arguments) {
  const bool start_by_name = only_start_is_named(arguments);
  if (arguments.values.empty() || arguments.values.size() > 2 || (arguments.named() != 0 && !start_by_name)) throw GraphBreak("sum() with other arguments than an iterable and a start");
  Ref total = arguments.values.size() == 2 ? arguments.values[1] : checked(PyLong_FromLong(0));
  if (PyUnicode_Check(total.get()) || PyBytes_Check(total.get()) || PyByteArray_Check(total.get())) throw GraphBreak("sum() of strings");
  // Floats are added with compensation from 3.12 on: plain numbers are for the real function.
  Ref run = checked(PyList_New(0));
  const auto add_run = [&] {
    if (PyList_GET_SIZE(run.get()) == 0) return;
    static PyObject* const real = PyDict_GetItemString(PyEval_GetBuiltins(), "sum");
    total = checked(PyObject_CallFunctionObjArgs(real, run.get(), total.get(), nullptr));
    run = checked(PyList_New(0));
  };
  // One item at a time: what is asked for the next one may do something, and comes after an addition that raises.
  Ref iterator = evaluator.iteration().iterator_of(evaluator.hidden_calls().with_numbers_read(arguments[0]).get());
  while (Ref item = evaluator.iteration().next_of(iterator.get())) {
    if (is_plain_number(item.get()) && is_plain_number(total.get())) {
      checked(PyList_Append(run.get(), item.get()));
      continue;
    }
    add_run();
    total = evaluator.operators().binary(0, total.get(), item.get());
  }
  add_run();
  return total;
}

Handled operator_getitem(Evaluator& evaluator, Arguments& arguments) {
  require_count(arguments, 2, "getitem");
  return evaluator.items().load(arguments[0], arguments[1]);
}

Handled operator_setitem(Evaluator& evaluator, Arguments& arguments) {
  require_count(arguments, 3, "setitem");
  evaluator.items().store(arguments[0], arguments[1], arguments[2]);
  return Ref::borrow(Py_None);
}

Handled operator_delitem(Evaluator& evaluator, Arguments& arguments) {
  require_count(arguments, 2, "delitem");
  evaluator.items().store(arguments[0], arguments[1], nullptr);
  return Ref::borrow(Py_None);
}

Handled operator_contains(Evaluator& evaluator, Arguments& arguments) {
  require_count(arguments, 2, "contains");
  return Ref::borrow(evaluator.items().contains(arguments[0], arguments[1]) ? Py_True : Py_False);
}

namespace {

/// Calls what a closure wraps, which is the same at each call of the closure.
Ref call_wrapped(Evaluator& evaluator, PyObject* inner, Arguments arguments) {
  Heap& heap = evaluator.heap();
  if (!heap.is_born(inner)) heap.make_known(inner, heap.sources().constant(inner));
  return evaluator.call_now(inner, std::move(arguments));
}

}  // namespace

std::optional<Ref> call_past_recursion_guard(Evaluator& evaluator, PyObject* function, Arguments arguments) {
  PyObject* inner = free_variable(function, names().user_function);
  if (inner == nullptr) throw GraphBreak("a repr that watches for recursion");
  return call_wrapped(evaluator, inner, std::move(arguments));
}

Ref call_in_error_state(Evaluator& evaluator, PyObject* function, Arguments& arguments) {
  Heap& heap = evaluator.heap();
  for (const char* name : {"func", "self"}) {  // each comes before the other arguments
    PyObject* found = free_variable(function, checked(PyUnicode_InternFromString(name)).get());
    if (found == nullptr) throw GraphBreak("a function that np.errstate decorates in an unusual way", kErrstateHint);
    if (!heap.is_born(found) && !heap.source_of(found)) heap.make_known(found, heap.sources().constant(found));
    arguments.values.insert(arguments.values.begin(), Ref::borrow(found));
  }
  return checked(PyObject_GetAttrString(checked(imported("tenon._error_handling")).get(), "call_decorated"));
}

std::optional<Ref> call_past_disabling(Evaluator& evaluator, PyObject* function, Arguments arguments) {
  PyObject* inner = free_variable(function, checked(PyUnicode_InternFromString("fn")).get());
  PyObject* module = inner && PyFunction_Check(inner) ? PyFunction_GetModule(inner) : nullptr;
  const char* name = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : nullptr;
  if (name != nullptr && is_checkpoint(inner)) return checkpoint(evaluator, std::move(arguments));
  if (name == nullptr || !std::string_view(name).starts_with("torch.optim.")) {
    PyErr_Clear();
    throw GraphBreak(kKeptFromCompilers, "call it outside of the compiled function, or take torch.compiler.disable off it");
  }
  return call_wrapped(evaluator, inner, std::move(arguments));
}

std::optional<Ref> dispatch_on_class(Evaluator& evaluator, PyObject* function, Arguments arguments) {
  PyObject* registry = free_variable(function, names().registry);
  if (registry == nullptr || !PyDict_Check(registry) || arguments.values.size() != 1 || !PyType_Check(arguments[0])) throw GraphBreak("functools.singledispatch looks for a function");
  // The real call fills this cache, which is to be seen by nobody.
  PyObject* cache = free_variable(function, checked(PyUnicode_InternFromString("dispatch_cache")).get());
  if (cache == nullptr || std::string_view(Py_TYPE(cache)->tp_name) != "WeakKeyDictionary") throw GraphBreak("functools.singledispatch keeps what it finds in a place of the program's");
  Heap& heap = evaluator.heap();
  heap.make_known(registry, heap.sources().constant(registry));
  heap.length(registry);
  for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(reinterpret_cast<PyTypeObject*>(arguments[0])->tp_mro); ++at)
    heap.dict_item(registry, PyTuple_GET_ITEM(reinterpret_cast<PyTypeObject*>(arguments[0])->tp_mro, at));
  heap.guard_bases(reinterpret_cast<PyTypeObject*>(arguments[0]));
  guard_registrations(heap);  // abstract classes may be among those that have a function
  Ref found = evaluator.calls().call_real(function, arguments);
  if (!heap.is_born(found.get())) heap.make_known(found.get(), heap.sources().constant(found.get()));
  return found;
}

}  // namespace tenon::python
