#include "python/builtins/handlers.h"

#include <fmt/format.h>

#include "python/builtins/table.h"
#include "python/compat/object_layout.h"
#include "python/evaluator/evaluator.h"
#include "python/heap/names.h"

namespace tenon::python {
namespace {

Ref boolean(bool value) { return Ref::borrow(value ? Py_True : Py_False); }

/// Handlers take positional arguments only; anything else is a call that the real function should judge.
void require_arguments(const Arguments& arguments, std::size_t least, std::size_t most, const char* function) {
  if (arguments.named() != 0 || arguments.positional() < least || arguments.positional() > most)
    throw GraphBreak(fmt::format("{}() with {} arguments", function, arguments.values.size()));
}

PyObject* attribute_name(PyObject* name) {
  if (!PyUnicode_Check(name)) throw GraphBreak("an attribute name that is no string");
  PyUnicode_InternInPlace(&name);
  return name;
}

bool is_subclass(Evaluator& evaluator, PyTypeObject* type, PyObject* of, PyObject* instance) {
  if (evaluator.heap().traits(of).container == Container::tuple) {
    for (const Ref& each : evaluator.items_of(of))
      if (is_subclass(evaluator, type, each.get(), instance)) return true;
    return false;
  }
  if (!PyType_Check(of)) return checked(PyObject_IsSubclass(reinterpret_cast<PyObject*>(type), of)) != 0;  // X | Y
  PyObject* check = evaluator.heap().type_attribute(Py_TYPE(of), instance ? names().__instancecheck__ : names().__subclasscheck__);
  if (is_python_function(check)) {
    // Abstract classes and torch's Parameter: the answer depends on the type alone, unless an instance's marker is asked for.
    if (instance != nullptr && !evaluator.is_stand_in(instance)) return checked(PyObject_IsInstance(instance, of)) != 0;
    if (instance != nullptr && PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(of))) return true;
    if (instance != nullptr) return false;
    return checked(PyObject_IsSubclass(reinterpret_cast<PyObject*>(type), of)) != 0;
  }
  return PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(of));
}

}  // namespace

Handled builtin_len(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 1, 1, "len");
  return checked(PyLong_FromSsize_t(evaluator.length(arguments[0])));
}

Handled builtin_isinstance(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 2, 2, "isinstance");
  return boolean(is_subclass(evaluator, evaluator.visible_type(arguments[0]), arguments[1], arguments[0]));
}

Handled builtin_issubclass(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 2, 2, "issubclass");
  if (!PyType_Check(arguments[0])) throw GraphBreak("issubclass() of something that is no class");
  return boolean(is_subclass(evaluator, reinterpret_cast<PyTypeObject*>(arguments[0]), arguments[1], nullptr));
}

Handled builtin_getattr(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 2, 3, "getattr");
  PyObject* name = attribute_name(arguments[1]);
  if (arguments.positional() == 2) return evaluator.load_attribute(arguments[0], name);
  std::optional<Ref> found = evaluator.find_attribute(arguments[0], name);
  return found ? std::move(*found) : arguments.values[2];
}

Handled builtin_hasattr(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 2, 2, "hasattr");
  return boolean(evaluator.find_attribute(arguments[0], attribute_name(arguments[1])).has_value());
}

Handled builtin_setattr(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 3, 3, "setattr");
  evaluator.store_attribute(arguments[0], attribute_name(arguments[1]), arguments[2]);
  return Ref::borrow(Py_None);
}

Handled builtin_iter(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 1, 1, "iter");
  return evaluator.iterator_of(arguments[0]);
}

Handled builtin_next(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 1, 2, "next");
  if (Ref value = evaluator.next_of(arguments[0])) return value;
  if (arguments.positional() == 2) return arguments.values[1];
  PyErr_SetNone(PyExc_StopIteration);
  throw PythonError();
}

Handled builtin_type(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 1, 1, "type");
  return Ref::borrow(reinterpret_cast<PyObject*>(evaluator.visible_type(arguments[0])));
}

Handled builtin_str(Evaluator& evaluator, Arguments& arguments) {
  if (arguments.values.empty()) return checked(PyUnicode_FromString(""));
  require_arguments(arguments, 1, 1, "str");
  return evaluator.to_string(arguments[0], names().__str__);
}

Handled builtin_repr(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 1, 1, "repr");
  return evaluator.to_string(arguments[0], names().__repr__);
}

Handled builtin_bool(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 0, 1, "bool");
  return boolean(!arguments.values.empty() && evaluator.truth(arguments[0]));
}

Handled builtin_super(Evaluator& evaluator, Arguments& arguments) {
  if (arguments.values.empty()) {
    Frame& f = evaluator.frame();
    for (int slot = 0; slot < f.code->local_count(); ++slot) {
      if (f.code->local_name(slot) != names().__class__) continue;
      PyObject* self = f.locals[0].object.get();
      if (self != nullptr && PyCell_Check(self)) self = PyCell_GET(self);
      PyObject* type = PyCell_GET(f.locals[slot].object.get());
      if (self == nullptr || type == nullptr) throw GraphBreak("super() before its class exists");
      arguments.values = {evaluator.heap().part(SourceKind::cell_contents, f.locals[slot].object.get(), type), Ref::borrow(self)};
      break;
    }
  }
  require_arguments(arguments, 2, 2, "super");
  return evaluator.heap().born(evaluator.call_real(reinterpret_cast<PyObject*>(&PySuper_Type), arguments));
}

Handled builtin_vars(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 1, 1, "vars");
  return evaluator.load_attribute(arguments[0], names().__dict__);
}

Handled object_new(Evaluator& evaluator, Arguments& arguments) {
  if (arguments.values.empty() || !PyType_Check(arguments[0])) throw GraphBreak("object.__new__ without a class");
  auto* type = reinterpret_cast<PyTypeObject*>(arguments[0]);
  if (PyType_HasFeature(type, Py_TPFLAGS_IS_ABSTRACT)) throw GraphBreak("an abstract class is instantiated");
  Ref nothing = checked(PyTuple_New(0));
  return evaluator.heap().born(checked(PyBaseObject_Type.tp_new(type, nothing.get(), nullptr)));
}

Handled object_init(Evaluator&, Arguments&) { return Ref::borrow(Py_None); }

Handled object_getattribute(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 2, 2, "object.__getattribute__");
  return evaluator.generic_attribute(arguments[0], attribute_name(arguments[1]));
}

Handled object_setattr(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 3, 3, "object.__setattr__");
  evaluator.generic_store_attribute(arguments[0], attribute_name(arguments[1]), arguments[2]);
  return Ref::borrow(Py_None);
}

Handled list_append(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 2, 2, "append");
  if (!PyList_Check(arguments[0])) throw GraphBreak("list.append of something else");
  evaluator.heap().require_writable(arguments[0], "append to a list: a change");
  checked(PyList_Append(arguments[0], arguments[1]));
  return Ref::borrow(Py_None);
}

Handled dict_get(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 2, 3, "get");
  if (!PyDict_Check(arguments[0])) throw GraphBreak("dict.get of something else");
  evaluator.require_plain(arguments[1]);
  if (Ref value = evaluator.heap().dict_item(arguments[0], arguments[1])) return value;
  return arguments.positional() == 3 ? arguments.values[2] : Ref::borrow(Py_None);
}

Handled dict_getitem(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 2, 2, "__getitem__");
  evaluator.require_plain(arguments[1]);
  if (Ref value = evaluator.heap().dict_item(arguments[0], arguments[1])) return value;
  PyErr_SetObject(PyExc_KeyError, arguments[1]);
  throw PythonError();
}

Handled dict_contains(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 2, 2, "__contains__");
  evaluator.require_plain(arguments[1]);
  return boolean(evaluator.heap().dict_contains(arguments[0], arguments[1]));
}

Handled answer_false(Evaluator&, Arguments&) { return Ref::borrow(Py_False); }
Handled answer_none(Evaluator&, Arguments&) { return Ref::borrow(Py_None); }

Handled state_read(Evaluator& evaluator, Arguments& arguments) {
  (void)evaluator;
  (void)arguments;
  return std::nullopt;  // call_builtin runs it
}

Handled set_grad_enabled(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 1, 1, "_set_grad_enabled");
  Ref torch = checked(PyImport_ImportModule("torch._C"));
  Ref before = checked(PyObject_CallMethod(torch.get(), "is_grad_enabled", nullptr));
  Ref setter = checked(PyObject_GetAttrString(torch.get(), "_set_grad_enabled"));
  evaluator.heap().on_rollback([before, setter] {
    Ref done = Ref::steal(PyObject_CallOneArg(setter.get(), before.get()));
    if (!done) PyErr_Clear();
  });
  return evaluator.call_real(setter.get(), arguments);
}

}  // namespace tenon::python
