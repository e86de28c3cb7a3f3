#include "python/builtins/handlers.h"

#include <fmt/format.h>

#include <string_view>

#include "python/builtins/table.h"
#include "python/compat/object_layout.h"
#include "python/evaluator/evaluator.h"
#include "python/objects/imported.h"
#include "python/objects/names.h"

namespace tenon::python {
namespace {

Ref boolean(bool value) { return Ref::borrow(value ? Py_True : Py_False); }

/// The name, interned in the place that holds it, as the evaluator compares names by address.
PyObject* attribute_name(Arguments& arguments, std::size_t at = 1) {
  if (!PyUnicode_CheckExact(arguments[at])) throw GraphBreak("an attribute name that is no string");
  PyObject* name = arguments.values[at].release();
  PyUnicode_InternInPlace(&name);
  arguments.values[at] = Ref::steal(name);
  return name;
}

/// The first argument of a function, from which super() finds its object.
Ref first_argument(Evaluator& evaluator, Frame& f) {
  PyObject* value = evaluator.local(f, 0);
  const bool in_cell = value != nullptr && PyCell_Check(value) && compat::is_cell_variable(f.code->code(), 0);
  if (value == nullptr || (in_cell && PyCell_GET(value) == nullptr)) throw GraphBreak("super() without its first argument");
  return in_cell ? evaluator.heap().part(SourceKind::cell_contents, value, PyCell_GET(value)) : Ref::borrow(value);
}

/// What hash() makes of what a `__hash__` gave: an int is the hash itself, unless it is too wide.
Ref hash_from(PyObject* given) {
  if (!PyLong_Check(given)) throw GraphBreak("a __hash__ that gives no int");
  const Py_ssize_t value = PyLong_AsSsize_t(given);
  if (value != -1 || !PyErr_Occurred()) return checked(PyLong_FromSsize_t(value == -1 ? -2 : value));
  PyErr_Clear();
  return checked(PyLong_FromSsize_t(PyLong_Type.tp_hash(given)));
}

Ref hash_of(PyObject* object) {
  const Py_hash_t hash = PyObject_Hash(object);
  if (hash == -1) throw_python_error();
  return checked(PyLong_FromSsize_t(hash));
}

}  // namespace

void require_arguments(const Arguments& arguments, std::size_t least, std::size_t most, const char* function) {
  if (arguments.named() != 0 || arguments.positional() < least || arguments.positional() > most)
    throw GraphBreak(fmt::format("{}() with {} arguments", function, arguments.values.size()));
}

bool only_start_is_named(const Arguments& arguments) {
  return arguments.named() == 1 && PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(arguments.names.get(), 0), "start") == 0;
}

Handled builtin_len(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 1, 1, "len");
  if (evaluator.is_stand_in(arguments[0]))
    if (Ref length = evaluator.recorder().length(arguments[0])) return length;
  if (Ref length = evaluator.heap().varying_length(arguments[0])) return length;
  return checked(PyLong_FromSsize_t(evaluator.operators().length(arguments[0])));
}

Handled builtin_getattr(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 2, 3, "getattr");
  PyObject* name = attribute_name(arguments);
  if (arguments.positional() == 2) return evaluator.attributes().load(arguments[0], name);
  std::optional<Ref> found = evaluator.attributes().find(arguments[0], name);
  return found ? std::move(*found) : arguments.values[2];
}

Handled builtin_hasattr(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 2, 2, "hasattr");
  return boolean(evaluator.attributes().find(arguments[0], attribute_name(arguments)).has_value());
}

Handled builtin_setattr(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 3, 3, "setattr");
  evaluator.attributes().store(arguments[0], attribute_name(arguments), arguments[2]);
  return Ref::borrow(Py_None);
}

Handled builtin_iter(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 1, 1, "iter");
  return evaluator.iteration().iterator_of(arguments[0]);
}

Handled builtin_next(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 1, 2, "next");
  if (arguments.positional() == 1) return evaluator.iteration().next_or_stop(arguments[0]);
  Ref item = evaluator.iteration().next_of(arguments[0]);
  return item ? std::move(item) : std::move(arguments.values[1]);
}

Handled builtin_type(Evaluator& evaluator, Arguments& arguments) {
  if (arguments.positional() == 3 && arguments.named() == 0 && PyTuple_Check(arguments[1]) && PyDict_Check(arguments[2])) {
    evaluator.heap().expose(arguments[1]);
    evaluator.heap().expose(arguments[2]);
    Ref space = checked(PyDict_Copy(arguments[2]));
    return evaluator.classes().make_class(&PyType_Type, arguments[0], arguments[1], space.get(), {});
  }
  require_arguments(arguments, 1, 1, "type");
  return Ref::borrow(reinterpret_cast<PyObject*>(evaluator.visible_type(arguments[0])));
}

Handled builtin_str(Evaluator& evaluator, Arguments& arguments) {
  if (arguments.values.empty()) return checked(PyUnicode_FromString(""));
  if (arguments.values.size() > 1 && PyBytes_Check(arguments[0])) return evaluator.calls().call_real(reinterpret_cast<PyObject*>(&PyUnicode_Type), arguments);
  require_arguments(arguments, 1, 1, "str");
  return evaluator.texts().to_string(arguments[0], names().__str__);
}

Handled builtin_repr(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 1, 1, "repr");
  return evaluator.texts().to_string(arguments[0], names().__repr__);
}

Handled builtin_format(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 1, 2, "format");
  const bool has_spec = arguments.positional() == 2;
  if (has_spec && !PyUnicode_Check(arguments[1])) throw GraphBreak("format() with a specification that is no text");
  return evaluator.texts().formatted(arguments[0], has_spec ? arguments[1] : nullptr);
}

Handled builtin_bool(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 0, 1, "bool");
  return boolean(!arguments.values.empty() && evaluator.operators().truth(arguments[0]));
}

Handled builtin_super(Evaluator& evaluator, Arguments& arguments) {
  if (arguments.values.empty()) {
    Frame& f = evaluator.frame();
    for (int slot = 0; slot < f.code->local_count(); ++slot) {
      if (f.code->local_name(slot) != names().__class__) continue;
      if (f.code->code()->co_argcount == 0) throw GraphBreak("super() in a function without arguments");
      PyObject* type = PyCell_GET(f.locals[slot].object.get());
      if (type == nullptr) throw GraphBreak("super() before its class exists");
      Ref self = first_argument(evaluator, f);
      arguments.values = {evaluator.heap().part(SourceKind::cell_contents, f.locals[slot].object.get(), type), std::move(self)};
      break;
    }
  }
  require_arguments(arguments, 2, 2, "super");
  return evaluator.heap().born(evaluator.calls().call_real(reinterpret_cast<PyObject*>(&PySuper_Type), arguments));
}

Handled builtin_vars(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 1, 1, "vars");
  if (std::optional<Ref> found = evaluator.attributes().find(arguments[0], names().__dict__)) return found;
  PyErr_SetString(PyExc_TypeError, "vars() argument must have __dict__ attribute");
  throw PythonError();
}

Handled object_new(Evaluator& evaluator, Arguments& arguments) {
  if (arguments.values.empty() || !PyType_Check(arguments[0])) throw GraphBreak("object.__new__ without a class");
  static PyObject* const maker = checked(PyObject_GetAttr(reinterpret_cast<PyObject*>(&PyBaseObject_Type), names().__new__)).release();
  return evaluator.heap().born(evaluator.calls().call_real(maker, arguments));  // which refuses arguments, and classes of other layouts
}

Handled object_init(Evaluator& evaluator, Arguments& arguments) {
  return evaluator.calls().call_real(compat::type_lookup(&PyBaseObject_Type, names().__init__), arguments);
}

Handled object_getattribute(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 2, 2, "object.__getattribute__");
  return evaluator.attributes().generic(arguments[0], attribute_name(arguments));
}

Handled object_setattr(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 3, 3, "object.__setattr__");
  if (PyType_Check(arguments[0])) throw GraphBreak("object.__setattr__ of a class");
  evaluator.attributes().generic_store(arguments[0], attribute_name(arguments), arguments[2]);
  return Ref::borrow(Py_None);
}

Handled object_delattr(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 2, 2, "object.__delattr__");
  if (PyType_Check(arguments[0])) throw GraphBreak("object.__delattr__ of a class");
  evaluator.attributes().generic_remove(arguments[0], attribute_name(arguments));
  return Ref::borrow(Py_None);
}

Handled builtin_delattr(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 2, 2, "delattr");
  evaluator.attributes().remove(arguments[0], attribute_name(arguments));
  return Ref::borrow(Py_None);
}

Handled builtin_hash(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 1, 1, "hash");
  const TypeTraits& traits = evaluator.heap().traits(arguments[0]);
  PyObject* method = traits.atom ? nullptr : evaluator.heap().type_attribute(Py_TYPE(arguments[0]), names().__hash__);
  if (is_python_function(method)) {
    Ref value = evaluator.call_now(method, {arguments[0]});
    return hash_from(evaluator.heap().plain_key(value.get()).get());
  }
  const bool by_value = traits.atom || traits.container != Container::none;
  if (!by_value) throw GraphBreak("a hash that is an address");
  evaluator.equality().prepare_hash(arguments[0]);
  return hash_of(arguments[0]);
}

Handled builtin_callable(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 1, 1, "callable");
  PyTypeObject* type = evaluator.visible_type(arguments[0]);
  if (type == Py_TYPE(arguments[0])) evaluator.heap().guard_special_methods(type);
  else evaluator.heap().type_attribute(type, names().__call__);
  return boolean(type->tp_call != nullptr);
}

/// collections.Counter counts in C where its mapping is a dict.
Handled count_elements(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 2, 2, "_count_elements");
  PyObject* counts = arguments[0];
  if (evaluator.heap().traits(counts).container != Container::dict) throw GraphBreak("elements are counted in something that is no dict");
  Ref one = checked(PyLong_FromLong(1)), zero = checked(PyLong_FromLong(0));
  const auto overrides = [&](PyObject* name) { return is_python_function(evaluator.heap().type_attribute(Py_TYPE(counts), name)); };
  const bool overridden = overrides(names().get) || overrides(names().__setitem__);
  for (const Ref& item : evaluator.iteration().items_of(arguments[1])) {
    if (overridden) {
      Ref before = evaluator.call_now(evaluator.attributes().load(counts, names().get).get(), {item.get(), zero.get()});
      evaluator.items().store(counts, item.get(), evaluator.operators().binary(0, before.get(), one.get()).get());
      continue;
    }
    evaluator.equality().prepare_key(item.get(), counts);
    Ref before = evaluator.heap().dict_item(counts, item.get());
    Ref after = before ? evaluator.operators().binary(0, before.get(), one.get()) : one;
    evaluator.heap().store_key(counts, item.get(), after.get());
  }
  return Ref::borrow(Py_None);
}

/// Whether instances keep attributes outside of their `__dict__`.
bool has_slots(PyTypeObject* type) {
  for (Py_ssize_t base = 0; base < PyTuple_GET_SIZE(type->tp_mro); ++base) {
    Py_ssize_t position = 0;
    PyObject *key, *member;
    while (PyDict_Next(compat::type_dict(reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(type->tp_mro, base))), &position, &key, &member))
      if (Py_TYPE(member) == &PyMemberDescr_Type && compat::is_writable_member(member)) return true;
  }
  return false;
}

/// object.__reduce_ex__ for copies: how a plain object is made again.
Handled object_reduce(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 2, 2, "__reduce_ex__");
  Heap& heap = evaluator.heap();
  PyObject* object = arguments[0];
  PyTypeObject* type = Py_TYPE(object);
  const Names& n = names();
  const bool plain = heap.traits(type).python_class && heap.traits(type).container == Container::none && !PyExceptionInstance_Check(object) &&
                     type->tp_basicsize <= static_cast<Py_ssize_t>(sizeof(PyObject) + 2 * sizeof(PyObject*));
  const bool new_protocol = PyLong_Check(arguments[1]) && PyLong_AsLong(arguments[1]) >= 2;
  if (!plain || !new_protocol || has_slots(type)) throw GraphBreak(fmt::format("a {} is taken apart for a copy", type->tp_name));
  for (PyObject* name : {n.__reduce__, n.__getstate__, n.__getnewargs__, n.__getnewargs_ex__})
    if (heap.type_attribute(type, name) != compat::type_lookup(&PyBaseObject_Type, name)) throw GraphBreak(fmt::format("a copy of a {}, which has a way of its own", type->tp_name));
  // copyreg keeps them there, an empty list for a class without slots: no guard, which would fail when it does.
  if (PyObject* slots = compat::type_lookup(type, n.__slotnames__); slots != nullptr && checked(PyObject_IsTrue(slots)) != 0)
    throw GraphBreak(fmt::format("a copy of a {}, which names what is copied", type->tp_name));
  PyObject* state = heap.attributes_of(object);
  if (state != nullptr && heap.length(state) == 0) state = nullptr;
  Ref copyreg = checked(imported("copyreg"));
  Ref maker = checked(PyObject_GetAttrString(copyreg.get(), "__newobj__"));
  heap.make_known(maker.get(), heap.sources().constant(maker.get()));
  if (state != nullptr && !heap.source_of(state)) heap.adopt(Ref::borrow(state));
  Ref given = heap.born(checked(PyTuple_Pack(1, reinterpret_cast<PyObject*>(type))));
  return heap.born(checked(PyTuple_Pack(5, maker.get(), given.get(), state ? state : Py_None, Py_None, Py_None)));
}

Handled change_list_in_c(Evaluator& evaluator, Arguments& arguments) {
  if (arguments.values.empty() || !PyList_CheckExact(arguments[0]) || arguments.named() != 0) throw GraphBreak("a list is changed by C code in a way that is not followed", kCodeInCHint);
  Heap& heap = evaluator.heap();
  const Ref list = arguments.values.front();
  if (heap.is_older(list.get(), "a change")) throw GraphBreak("heapq or bisect change a list that is older than the call", kReturnHint);
  for (const Ref& value : arguments.values) {
    heap.expose(value.get());
    evaluator.hidden_calls().require_plain(value.get());
  }
  return std::nullopt;  // call_builtin runs it
}

Handled list_append(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 2, 2, "append");
  if (!PyList_Check(arguments[0])) throw GraphBreak("list.append of something else");
  if (evaluator.heap().is_older(arguments[0], "append")) {
    Arguments item;
    item.values = {arguments.values[1]};
    return change_older(evaluator, arguments[0], "append", std::move(item));
  }
  checked(PyList_Append(arguments[0], arguments[1]));
  return Ref::borrow(Py_None);
}

Handled dict_get(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 2, 3, "get");
  if (!PyDict_Check(arguments[0])) throw GraphBreak("dict.get of something else");
  evaluator.equality().prepare_key(arguments[1], arguments[0]);
  if (Ref value = evaluator.heap().dict_item(arguments[0], arguments[1])) return value;
  return arguments.positional() == 3 ? arguments.values[2] : Ref::borrow(Py_None);
}

Handled dict_getitem(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 2, 2, "__getitem__");
  evaluator.equality().prepare_key(arguments[1], arguments[0]);
  if (Ref value = evaluator.heap().dict_item(arguments[0], arguments[1])) return value;
  PyErr_SetObject(PyExc_KeyError, arguments[1]);
  throw PythonError();
}

Handled dict_contains(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 2, 2, "__contains__");
  evaluator.equality().prepare_key(arguments[1], arguments[0]);
  return boolean(evaluator.heap().dict_contains(arguments[0], arguments[1]));
}

Handled answer_false(Evaluator&, Arguments&) { return Ref::borrow(Py_False); }
Handled answer_none(Evaluator&, Arguments&) { return Ref::borrow(Py_None); }

namespace {

/// Whether torch's own code runs, or ours in its place: it sets a state as it was.
bool is_of_torch(const Frame& frame) {
  PyObject* module = PyDict_GetItemWithError(frame.globals.get(), names().__name__);
  const std::string_view name = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : "";
  return name.starts_with("torch.") || name.starts_with("tenon.");
}

}  // namespace

Handled state_read(Evaluator& evaluator, Arguments&) {
  if (evaluator.heap().guards().are_read_again() && !is_of_torch(evaluator.frame())) throw GraphBreak("what runs after the call asks for torch's state, which may be another one then");
  return std::nullopt;  // call_builtin runs it
}

Handled set_grad_enabled(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 1, 1, "_set_grad_enabled");
  Ref torch = checked(imported("torch._C"));
  Ref before = checked(PyObject_CallMethod(torch.get(), "is_grad_enabled", nullptr));
  if (evaluator.library_states().is_in_mode()) {
    if (arguments[0] != before.get()) throw GraphBreak("grad mode is changed inside of a mode that the graph has entered");
    return Ref::borrow(Py_None);
  }
  Ref setter = checked(PyObject_GetAttrString(torch.get(), "_set_grad_enabled"));
  evaluator.heap().on_rollback([before, setter] {
    Ref done = Ref::steal(PyObject_CallOneArg(setter.get(), before.get()));
    if (!done) PyErr_Clear();
  });
  Ref result = evaluator.calls().call_real(setter.get(), arguments);
  Ref now = checked(PyObject_CallMethod(torch.get(), "is_grad_enabled", nullptr));
  evaluator.library_states().set(std::move(setter), std::move(before), std::move(now));
  return result;
}

}  // namespace tenon::python
