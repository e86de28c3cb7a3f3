// isinstance and issubclass, also of classes that have a say in it: abstract ones, and those whose metaclass is asked.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "python/builtins/handlers.h"
#include "python/builtins/legacy_tensors.h"
#include "python/compat/abstract_classes.h"
#include "python/compat/object_layout.h"
#include "python/evaluator/evaluator.h"
#include "python/guards/pins.h"
#include "python/objects/imported.h"
#include "python/objects/names.h"

namespace tenon::python {
namespace {

/// Whether the object has a `__class__` of its own that is such a class.
bool claims_to_be(Evaluator& evaluator, PyObject* instance, PyTypeObject* of) {
  evaluator.heap().guard_special_methods(Py_TYPE(instance));
  const auto is_own = [&](PyObject* name) { return compat::type_lookup(Py_TYPE(instance), name) != compat::type_lookup(&PyBaseObject_Type, name); };
  if (!is_own(names().__class__) && !is_own(names().__getattribute__)) return false;
  std::optional<Ref> claimed = evaluator.attributes().find(instance, names().__class__);
  return claimed && PyType_Check(claimed->get()) && PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(claimed->get()), of);
}

/// The module that a Python function, or the class method made of one, comes from; empty for anything else.
std::string_view home_of(PyObject* method) {
  Ref inner = Py_TYPE(method) == &PyClassMethod_Type ? checked(PyObject_GetAttr(method, names().dunder_func)) : Ref::borrow(method);
  if (!PyFunction_Check(inner.get())) return {};
  return written_in(inner.get());
}

/// Holds until an abstract class is told of another virtual subclass: what is none may have become one.
class NoNewRegistration final : public ValueCheck {
 public:
  explicit NoNewRegistration(const std::uint64_t* place) : place_(place), expected_(*place) {}
  bool holds(PyObject*) const noexcept override { return *place_ == expected_; }
  bool pin(PyObject*, Pins& pins) const override {
    pins.word(place_, expected_);
    return true;
  }
  std::string expected() const override { return fmt::format("{} registrations with abstract classes", expected_); }
  std::string found(PyObject*) const override { return fmt::format("{}", *place_); }

 private:
  const std::uint64_t* place_;
  std::uint64_t expected_;
};

/// An abstract class may have a `__subclasshook__`. Those of the standard library look at attributes of the class only.
void require_known_hook(Heap& heap, PyObject* of) {
  static PyObject* const name = checked(PyUnicode_InternFromString("__subclasshook__")).release();
  PyObject* hook = heap.type_attribute(reinterpret_cast<PyTypeObject*>(of), name);
  const std::string_view home = hook ? home_of(hook) : "";
  const bool known = home.empty() || home == "abc" || home.ends_with("collections.abc") || home == "_collections_abc" || home == "numbers" || home == "os" || home.starts_with("torch");
  if (!known) throw GraphBreak(fmt::format("{} decides by a __subclasshook__ which class is derived from it", reinterpret_cast<PyTypeObject*>(of)->tp_name));
}

}  // namespace

void guard_registrations(Heap& heap) {
  const std::uint64_t* place = compat::registrations();
  if (place == nullptr) throw GraphBreak("an abstract class is asked, on a CPython that counts registrations elsewhere");
  Ref module = checked(imported("_abc"));
  heap.guards().add_value_check(heap.sources().constant(module.get()), std::make_shared<NoNewRegistration>(place));
}

namespace {

/// What abc.ABCMeta answers. `instance` may be null, and is not looked at where something stands for it.
bool is_virtual_subclass(Evaluator& evaluator, PyTypeObject* type, PyObject* of, PyObject* instance) {
  require_known_hook(evaluator.heap(), of);
  if (instance != nullptr) evaluator.heap().guard_special_methods(type);
  Ref module = checked(imported("_abc"));
  const bool by_instance = instance != nullptr && !evaluator.is_stand_in(instance) && !evaluator.heap().is_number(instance);
  Ref answer = checked(PyObject_CallMethod(module.get(), by_instance ? "_abc_instancecheck" : "_abc_subclasscheck", "OO", of, by_instance ? instance : reinterpret_cast<PyObject*>(type)));
  if (answer.is(Py_True)) return true;
  guard_registrations(evaluator.heap());
  return false;
}

/// Guards what typing reads of a protocol to know its members: the attributes of its class and of the protocols that it is made of. Gives their names.
std::vector<Ref> members_of_protocol(Evaluator& evaluator, PyTypeObject* protocol) {
  Heap& heap = evaluator.heap();
  for (Py_ssize_t at = 0; at + 1 < PyTuple_GET_SIZE(protocol->tp_mro); ++at) {
    auto* base = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(protocol->tp_mro, at));
    Ref home = checked(PyObject_GetAttr(as_object(base), names().__module__));
    if (PyUnicode_Check(home.get()) && PyUnicode_CompareWithASCIIString(home.get(), "typing") == 0) continue;  // Protocol and Generic themselves
    heap.enter_class_dict(base);
    heap.expose(compat::type_dict(base));
  }
  heap.guard_bases(protocol);
  Ref members = checked(PyObject_CallMethod(checked(imported("typing")).get(), "_get_protocol_attrs", "O", protocol));
  std::vector<Ref> found;
  Ref list = checked(PySequence_List(members.get()));
  for (Py_ssize_t at = 0; at < PyList_GET_SIZE(list.get()); ++at) {
    PyObject* name = Py_NewRef(PyList_GET_ITEM(list.get(), at));
    PyUnicode_InternInPlace(&name);
    found.push_back(Ref::steal(name));
  }
  return found;
}

/// Guards whether an object has an attribute, where no Python code runs to say so.
void guard_member(Evaluator& evaluator, PyTypeObject* type, PyObject* object, PyObject* name) {
  Heap& heap = evaluator.heap();
  PyObject* found = heap.type_attribute(type, name);
  const bool runs = found != nullptr && (Py_TYPE(found) == &PyProperty_Type || is_python_function(heap.type_attribute(Py_TYPE(found), names().__get__)));
  if (runs) throw GraphBreak(fmt::format("a protocol asks for '{}', which Python code gives", name_text(name)));
  if (object == nullptr || heap.traits(object).atom || heap.traits(object).identity) return;
  if (PyObject* dict = heap.attributes_of(object)) heap.dict_item(dict, name);
}

/// isinstance() of a protocol, which looks for the attributes that the protocol names.
bool is_instance_of_protocol(Evaluator& evaluator, PyTypeObject* type, PyObject* of, PyObject* instance) {
  Heap& heap = evaluator.heap();
  const auto says = [&](const char* name) {
    std::optional<Ref> value = evaluator.attributes().find(of, checked(PyUnicode_InternFromString(name)).get());
    return value && evaluator.operators().truth(value->get());
  };
  if (!says("_is_protocol")) return is_virtual_subclass(evaluator, type, of, instance);
  if (!says("_is_runtime_protocol")) throw GraphBreak("isinstance() with a protocol that is not to be asked at run time");
  const bool stands_in = evaluator.is_stand_in(instance) || heap.is_number(instance);
  heap.guard_special_methods(type);
  heap.guard_bases(type);
  for (PyObject* name : {names().__getattribute__, names().__getattr__})
    if (PyObject* found = heap.type_attribute(type, name); found != nullptr && !stands_in && is_python_function(found)) throw GraphBreak("a protocol asks an object that looks attributes up itself");
  PyObject* object = stands_in ? heap.real_of(instance) : instance;
  for (const Ref& name : members_of_protocol(evaluator, reinterpret_cast<PyTypeObject*>(of))) guard_member(evaluator, type, object, name.get());
  guard_registrations(heap);
  if (evaluator.is_stand_in(instance) && object == nullptr) {
    Ref alike = empty_like_stand_in(instance);
    return alike && checked(PyObject_IsInstance(alike.get(), of)) != 0;
  }
  if (object != nullptr) return checked(PyObject_IsInstance(object, of)) != 0;
  return checked(PyObject_IsSubclass(as_object(type), of)) != 0;
}

/// By a `__instancecheck__` or `__subclasscheck__` that is written in Python.
bool asks_metaclass(Evaluator& evaluator, PyObject* check, PyTypeObject* type, PyObject* of, PyObject* instance) {
  const std::string_view home = home_of(check);
  if (home == "abc") return is_virtual_subclass(evaluator, type, of, instance);
  if (home == "typing" && instance != nullptr) return is_instance_of_protocol(evaluator, type, of, instance);
  if (!home.starts_with("torch")) return evaluator.operators().truth(evaluator.call_now(check, {of, instance ? instance : as_object(type)}).get());
  if (instance != nullptr && evaluator.is_stand_in(instance)) {
    if (PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(of))) return true;
    // Any tensor may have the marker of torch's Parameter or Buffer.
    return evaluator.operators().truth(evaluator.call_now(check, {of, instance}).get());
  }
  if (instance != nullptr && !evaluator.heap().is_number(instance)) return checked(PyObject_IsInstance(instance, of)) != 0;
  return checked(PyObject_IsSubclass(as_object(type), of)) != 0;
}

bool is_subclass(Evaluator& evaluator, PyTypeObject* type, PyObject* of, PyObject* instance);

/// A check that is no plain function of the metaclass, but a class method, a static method or an object that gives one when it is bound. Nothing
/// for what is C code.
std::optional<bool> asks_descriptor(Evaluator& evaluator, PyObject* check, PyObject* name, PyTypeObject* type, PyObject* of, PyObject* instance) {
  if (check == nullptr || check == Py_None || (!PyType_HasFeature(Py_TYPE(check), Py_TPFLAGS_HEAPTYPE) && !is_python_descriptor(check) && !PyMethod_Check(check))) return std::nullopt;
  Ref bound = evaluator.attributes().bind_special(check, of, name);
  return evaluator.operators().truth(evaluator.call_now(bound.get(), {instance ? instance : as_object(type)}).get());
}

/// Counts tuples in tuples of classes against the limit of recursion, as Python does.
struct NestedCheck {
  explicit NestedCheck(const char* where) {
    if (Py_EnterRecursiveCall(where) != 0) throw PythonError();
  }
  ~NestedCheck() { Py_LeaveRecursiveCall(); }
};

/// X | Y is asked by its parts; what typing makes (Optional[X]) must be this one at every call; an object of the program by its method.
bool is_subclass_of_form(Evaluator& evaluator, PyTypeObject* type, PyObject* of, PyObject* instance) {
  Heap& heap = evaluator.heap();
  const SourceId source = heap.source_of(of);
  if (std::string_view(Py_TYPE(of)->tp_name) == "types.UnionType") {
    Ref name = checked(PyUnicode_InternFromString("__args__")), parts = checked(PyObject_GetAttr(of, name.get()));
    PyObject* descriptor = compat::type_lookup(Py_TYPE(of), name.get());
    Ref seen = source ? heap.enter(heap.sources().keyed(SourceKind::member, source, descriptor), parts.get()) : heap.adopt(std::move(parts));
    return is_subclass(evaluator, type, seen.get(), instance);
  }
  PyObject* const name = instance ? names().__instancecheck__ : names().__subclasscheck__;
  PyObject* check = heap.type_attribute(Py_TYPE(of), name);
  if (check == nullptr) throw GraphBreak("isinstance() or issubclass() with what is no class");  // it may have a `__bases__`
  if (const auto answer = asks_descriptor(evaluator, check, name, type, of, instance)) return *answer;
  if (PyFunction_Check(check) && home_of(check) != "typing") return evaluator.operators().truth(evaluator.call_now(check, {of, instance ? instance : as_object(type)}).get());
  if (source && heap.sources()[source].kind != SourceKind::constant) heap.guards().add(GuardKind::identity, source, of);
  if (std::string_view(Py_TYPE(of)->tp_name) == "_UnionGenericAlias") {  // Optional[X], X never changes
    Ref parts = checked(PyObject_GetAttrString(of, "__args__"));
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(parts.get()); ++at)
      if (is_subclass(evaluator, type, PyTuple_GET_ITEM(parts.get(), at), nullptr)) return true;
    return false;
  }
  heap.guard_bases(type);
  const int answer = PyObject_IsSubclass(as_object(type), of);
  if (answer < 0 && instance != nullptr && PyErr_ExceptionMatches(PyExc_TypeError)) {
    PyErr_Clear();
    throw GraphBreak("isinstance() with what is no class");  // in other words than issubclass() says it
  }
  return checked(answer) != 0;
}

bool is_subclass(Evaluator& evaluator, PyTypeObject* type, PyObject* of, PyObject* instance) {
  if (evaluator.heap().traits(of).container == Container::tuple) {
    const NestedCheck deeper(instance ? " in __instancecheck__" : " in __subclasscheck__");
    return std::ranges::any_of(evaluator.iteration().items_of(of), [&](const Ref& each) { return is_subclass(evaluator, type, each.get(), instance); });
  }
  if (!PyType_Check(of)) return is_subclass_of_form(evaluator, type, of, instance);
  if (instance != nullptr && as_object(type) == of) return true;
  if (instance != nullptr && evaluator.is_stand_in(instance) && is_tensor_type(of)) {  // which looks at the dtype and the device in C
    Ref alike = empty_like_stand_in(instance);
    return alike && checked(PyObject_IsInstance(alike.get(), of)) != 0;
  }
  PyObject* const name = instance ? names().__instancecheck__ : names().__subclasscheck__;
  PyObject* check = evaluator.heap().type_attribute(Py_TYPE(of), name);
  evaluator.heap().guard_bases(type);
  if (check != nullptr && PyFunction_Check(check)) return asks_metaclass(evaluator, check, type, of, instance);
  if (const auto answer = asks_descriptor(evaluator, check, name, type, of, instance)) return *answer;
  if (PyType_IsSubtype(type, reinterpret_cast<PyTypeObject*>(of))) return true;
  const bool may_claim = instance != nullptr && evaluator.heap().traits(instance).python_class && evaluator.heap().traits(instance).role == Recorder::Role::other;
  return may_claim && claims_to_be(evaluator, instance, reinterpret_cast<PyTypeObject*>(of));
}

Ref answer(bool value) { return Ref::borrow(value ? Py_True : Py_False); }

PyTypeObject* class_in(const Arguments& arguments, std::size_t at) {
  if (!PyType_Check(arguments[at])) throw GraphBreak("issubclass() of something that is no class");
  return reinterpret_cast<PyTypeObject*>(arguments[at]);
}

}  // namespace

Handled builtin_isinstance(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 2, 2, "isinstance");
  return answer(is_subclass(evaluator, evaluator.visible_type(arguments[0]), arguments[1], arguments[0]));
}

Handled builtin_issubclass(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 2, 2, "issubclass");
  return answer(is_subclass(evaluator, class_in(arguments, 0), arguments[1], nullptr));
}

/// What any other metaclass calls in the end.
Handled type_instance_check(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 2, 2, "__instancecheck__");
  if (!PyType_Check(arguments[0]) || !evaluator.is_stand_in(arguments[1])) throw GraphBreak("type.__instancecheck__() of something that is no tensor");
  return answer(PyType_IsSubtype(evaluator.visible_type(arguments[1]), reinterpret_cast<PyTypeObject*>(arguments[0])) != 0);
}

/// What a metaclass derived from abc.ABCMeta calls in the end.
Handled abstract_instance_check(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 2, 2, "_abc_instancecheck");
  return answer(is_virtual_subclass(evaluator, evaluator.visible_type(arguments[1]), arguments[0], arguments[1]));
}

Handled abstract_subclass_check(Evaluator& evaluator, Arguments& arguments) {
  require_arguments(arguments, 2, 2, "_abc_subclasscheck");
  return answer(is_virtual_subclass(evaluator, class_in(arguments, 1), arguments[0], nullptr));
}

}  // namespace tenon::python
