// Runs C functions by their class in the table.
#include <fmt/format.h>

#include <algorithm>

#include "python/builtins/c_arguments.h"
#include "python/builtins/handlers.h"
#include "python/builtins/legacy_tensors.h"
#include "python/builtins/ordering.h"
#include "python/builtins/substitutes.h"
#include "python/builtins/table.h"
#include "python/builtins/varying_sizes.h"
#include "python/compat/object_layout.h"
#include "python/evaluator/evaluator.h"
#include "python/evaluator/generators.h"
#include "python/objects/names.h"

namespace tenon::python {
namespace {

bool is_descriptor(PyObject* callable) {
  return Py_TYPE(callable) == &PyMethodDescr_Type || Py_TYPE(callable) == &PyWrapperDescr_Type;
}

/// The unbound form of a bound C function of a built-in type, under which the table lists it.
PyObject* unbound_form(PyObject* callable, PyObject* self, PyObject* name) {
  PyTypeObject* type = Py_TYPE(self);
  if (Py_TYPE(callable) == compat::method_wrapper_type()) {  // through super() it may belong to a base
    Ref defining = Ref::steal(PyObject_GetAttrString(callable, "__objclass__"));
    if (!defining) PyErr_Clear();
    else type = reinterpret_cast<PyTypeObject*>(defining.get());
  }
  PyObject* found = compat::type_lookup(type, name);
  if (found != nullptr && is_descriptor(found)) return found;
  // super().__instancecheck__ in a metaclass is a method of `type` itself.
  found = PyType_Check(self) && PyCFunction_Check(callable) ? compat::type_lookup(&PyType_Type, name) : nullptr;
  const bool same = found != nullptr && Py_TYPE(found) == &PyMethodDescr_Type && reinterpret_cast<PyMethodDescrObject*>(found)->d_method == reinterpret_cast<PyCFunctionObject*>(callable)->m_ml;
  return same ? found : nullptr;
}

/// Whether a bound method is that of `dict` itself, also where the class of its dict has one of its own.
bool is_method_of_dict(PyObject* callable, PyObject* name) {
  PyObject* found = compat::type_lookup(&PyDict_Type, name);
  if (Py_TYPE(callable) == compat::method_wrapper_type()) return unbound_form(callable, Py_None, name) == found;
  return found != nullptr && Py_TYPE(found) == &PyMethodDescr_Type && PyCFunction_Check(callable) &&
         reinterpret_cast<PyMethodDescrObject*>(found)->d_method == reinterpret_cast<PyCFunctionObject*>(callable)->m_ml;
}

/// `__init_subclass__` or `__subclasshook__` of `object`, bound to any class: they do nothing.
bool is_class_method_of_object(PyObject* callable, PyObject* name) {
  PyObject* found = compat::type_lookup(&PyBaseObject_Type, name);
  return found != nullptr && Py_TYPE(found) == &PyClassMethodDescr_Type && PyCFunction_Check(callable) &&
         reinterpret_cast<PyMethodDescrObject*>(found)->d_method == reinterpret_cast<PyCFunctionObject*>(callable)->m_ml;
}

/// Whether it is a type, a plain constant, or a tuple of such: nothing that somebody would have to look for in an object of C code.
bool is_definition(Heap& heap, PyObject* value) {
  const TypeTraits& traits = heap.traits(value);
  if (PyTuple_CheckExact(value)) {
    for (Py_ssize_t at = 0; at < PyTuple_GET_SIZE(value); ++at)
      if (!is_definition(heap, PyTuple_GET_ITEM(value, at))) return false;
    return true;
  }
  return traits.role == Recorder::Role::other && (traits.atom || traits.identity);
}

bool iterates_its_arguments(const Builtin& builtin) { return builtin.kind != BuiltinClass::special; }

/// `int`, `abs` and the like ask the object's class for a method, which may be written in Python.
std::optional<Ref> convert(Evaluator& evaluator, PyObject* callable, const Builtin& builtin, const Arguments& arguments) {
  if (builtin.method == nullptr || arguments.values.empty() || arguments.named() != 0) return std::nullopt;
  const TypeTraits& traits = evaluator.heap().traits(arguments[0]);
  if (!traits.python_class || traits.identity || traits.role != Recorder::Role::other) return std::nullopt;
  PyObject* method = evaluator.heap().type_attribute(Py_TYPE(arguments[0]), *builtin.method);
  if (method == nullptr && callable == as_object(&PyReversed_Type) && is_python_function(evaluator.heap().type_attribute(Py_TYPE(arguments[0]), names().__getitem__)))
    return reverse_iterator_by_index(evaluator, arguments[0]);
  if (!is_python_function(method)) return std::nullopt;
  const bool asks_operands = *builtin.method == names().__divmod__ || *builtin.method == names().__pow__;
  const bool other_first = asks_operands && arguments.positional() > 1 && Py_TYPE(arguments[1]) != Py_TYPE(arguments[0]) && PyType_IsSubtype(Py_TYPE(arguments[1]), Py_TYPE(arguments[0]));
  if (other_first) throw GraphBreak(fmt::format("{}() of a {} and a {}, which is asked first", name_of(callable), Py_TYPE(arguments[0])->tp_name, Py_TYPE(arguments[1])->tp_name));
  Ref result = evaluator.call_now(method, arguments);
  if (asks_operands && result.is(Py_NotImplemented)) throw GraphBreak(fmt::format("{}() that its method in Python leaves to the other operands", name_of(callable)));
  // What the class promised is checked by the function itself, on the plain value.
  const bool converts = callable == as_object(&PyLong_Type) || callable == as_object(&PyFloat_Type) || callable == as_object(&PyBytes_Type);
  PyObject* const promised = converts ? callable : *builtin.method == names().__index__ ? as_object(&PyLong_Type) : nullptr;
  if (promised == nullptr || as_object(Py_TYPE(result.get())) == promised) return result;
  throw GraphBreak(fmt::format("{}() of a {} gives another type", name_of(callable), Py_TYPE(arguments[0])->tp_name));
}

/// Whether a format string has a field that reads an attribute: "{0.shape}".
bool formats_attributes(PyObject* format) {
  const char* text = PyUnicode_AsUTF8(format);
  if (text == nullptr) throw_python_error();
  bool in_name = false;
  for (; *text != '\0'; ++text) {
    if (*text == '{') in_name = true;
    else if (*text == '}' || *text == ':' || *text == '!') in_name = false;
    else if (in_name && *text == '.') return true;
  }
  return false;
}

/// str.format looks attributes up in C.
void require_no_attribute_in_format(Evaluator& evaluator, PyObject* self, PyObject* name, const Arguments& arguments) {
  if (!PyUnicode_Check(self) || !is_among(PyUnicode_AsUTF8(name), " format format_map ") || !formats_attributes(self)) return;
  for (const Ref& value : arguments.values)
    if (!evaluator.heap().traits(value.get()).atom) throw GraphBreak("str.format reads an attribute of an object");
}

/// `text.format(numbers)` or `text.join(texts)`, where some vary; else empty.
Ref late_text_of_method(Evaluator& evaluator, PyObject* callable, PyObject* name, const Arguments& arguments) {
  const bool any = std::ranges::any_of(arguments.values, [&](const Ref& value) { return evaluator.hidden_calls().holds_number(value.get()); });
  if (!any || arguments.values.empty()) return {};
  Ref given = checked(PyTuple_New(static_cast<Py_ssize_t>(arguments.values.size())));
  const bool joins = std::string_view(PyUnicode_AsUTF8(name)) == "join";
  for (std::size_t at = 0; at < arguments.values.size(); ++at) {
    PyObject* value = arguments[at];
    const bool list = joins && PyList_CheckExact(value) && !evaluator.heap().source_of(value);
    PyTuple_SET_ITEM(given.get(), static_cast<Py_ssize_t>(at), list ? checked(PyList_AsTuple(value)).release() : Py_NewRef(value));
  }
  return evaluator.recorder().late_text(callable, given.get());
}

/// Methods of tensors that ask no subclass: a stand-in would answer for itself.
constexpr std::string_view kAnsweredByTensor = " _use_count _fix_weakref _view_func _view_func_unsafe _rev_view_func_unsafe ";

/// Methods of sequences that compare their items.
constexpr std::string_view kCompareItems = " index count remove sort __contains__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ ";

/// Such a method of a list or tuple that holds real tensors: the same on what the program sees of it. Empty where the list itself now holds that.
std::optional<Ref> compare_items(Evaluator& evaluator, PyObject* self, PyObject* name, const Arguments& arguments) {
  if (!is_mutating_method(self, name)) {
    Ref seen = evaluator.hidden_calls().for_elements(self);
    Arguments others = arguments;
    for (Ref& value : others.values) value = evaluator.hidden_calls().for_elements(value.get());
    evaluator.hidden_calls().require_plain(seen.get());
    return evaluator.heap().adopt(evaluator.calls().call_real(checked(PyObject_GetAttr(seen.get(), name)).get(), others));
  }
  if (evaluator.heap().is_older(self, "a change")) throw GraphBreak(fmt::format("{}() compares the tensors that a {} holds", PyUnicode_AsUTF8(name), Py_TYPE(self)->tp_name));
  Ref seen = evaluator.hidden_calls().for_elements(self);
  checked(PyList_SetSlice(self, 0, PyList_GET_SIZE(self), seen.get()));
  return std::nullopt;
}

/// A method of a mappingproxy. The attributes of a class are older than the call: none may pass for an object of this capture.
Ref read_proxy(Evaluator& evaluator, PyObject* method, const Arguments& arguments) {
  Heap& heap = evaluator.heap();
  for (const Ref& value : arguments.values) heap.expose(value.get());
  Ref given = evaluator.calls().call_real(method, arguments);
  const TypeTraits& traits = heap.traits(given.get());
  const bool plain = traits.atom || traits.identity || heap.source_of(given.get()) || heap.is_born(given.get());
  if (!plain) throw GraphBreak(fmt::format("a {} is read out of a mappingproxy", given.type()->tp_name));
  return given;
}

/// What property, classmethod and staticmethod copy of a function.
void guard_copied_attributes(Evaluator& evaluator, PyObject* callable, const Arguments& arguments) {
  if (callable != as_object(&PyProperty_Type) && callable != as_object(&PyClassMethod_Type) && callable != as_object(&PyStaticMethod_Type)) return;
  for (const Ref& value : arguments.values) {
    if (!PyFunction_Check(value.get()) || evaluator.heap().is_born(value.get())) continue;
    for (PyObject* name : {names().__doc__, names().__name__, names().__qualname__, names().__module__}) evaluator.attributes().find(value.get(), name);
    if (callable != as_object(&PyProperty_Type)) evaluator.heap().expose(evaluator.attributes().load(value.get(), names().__dict__).get());
  }
}

/// min() or max() of floats alone, or of ints, one of which stands for a number.
bool is_extreme_of_numbers(Evaluator& evaluator, PyObject* callable, const Arguments& arguments) {
  const std::string_view name = reinterpret_cast<PyCFunctionObject*>(callable)->m_ml->ml_name;
  if ((name != "min" && name != "max") || arguments.values.size() < 2) return false;
  bool any = false;
  for (const Ref& value : arguments.values) {
    PyTypeObject* type = evaluator.visible_type(value.get());
    if ((type != &PyFloat_Type && type != &PyLong_Type) || type != evaluator.visible_type(arguments[0])) return false;
    any |= evaluator.heap().traits(value.get()).role == Recorder::Role::number;
  }
  return any;
}

/// A function of the module math, of one or two numbers among which is a stand-in: the recorder may know it as an op.
bool is_function_of_number(Evaluator& evaluator, PyObject* callable, const Arguments& arguments) {
  if (arguments.named() != 0 || !PyCFunction_Check(callable)) return false;
  PyObject* module = PyCFunction_GET_SELF(callable);
  if (module == nullptr || !PyModule_Check(module)) return false;
  if (is_extreme_of_numbers(evaluator, callable, arguments)) return true;
  const auto is_stand_in = [&](const Ref& value) { return evaluator.heap().traits(value.get()).role == Recorder::Role::number; };
  const auto is_number = [&](const Ref& value) { return is_stand_in(value) || PyFloat_CheckExact(value.get()) || PyLong_CheckExact(value.get()); };
  const bool of_numbers = std::ranges::any_of(arguments.values, is_stand_in) && std::ranges::all_of(arguments.values, is_number);
  if (arguments.values.size() > 2 || !of_numbers) return false;
  Ref name = checked(PyModule_GetNameObject(module));
  return PyUnicode_CompareWithASCIIString(name.get(), "math") == 0;
}

/// weakref.ref, or its `__new__` for a subclass. What is born here dies in the capture, and would call back unseen.
void require_no_callback_of_new_object(Evaluator& evaluator, PyObject* callable, const Arguments& arguments) {
  PyObject* const type = as_object(&_PyWeakref_RefType);
  const bool is_new = PyCFunction_Check(callable) && PyCFunction_GET_SELF(callable) == type;
  const std::size_t referent = is_new ? 1 : 0;
  if ((!is_new && callable != type) || arguments.values.size() < referent + 2 || arguments[referent + 1] == Py_None) return;
  if (!evaluator.heap().source_of(arguments[referent])) throw GraphBreak(fmt::format("a weak reference with a callback to a new {}", Py_TYPE(arguments[referent])->tp_name), kWeakHint);
}

/// `dict(D)` or `OrderedDict(D)`, or D.copy(), of a dict under whose keys numbers vary: nothing looks them up.
std::optional<Ref> copy_under_keys_that_vary(Heap& heap, PyTypeObject* type, PyObject* dict) {
  const auto is_plain = [](PyTypeObject* each) { return each == &PyDict_Type || each == library_types().ordered_dict; };
  if (!heap.has_loose_keys(dict) || !is_plain(type) || !is_plain(Py_TYPE(dict))) return std::nullopt;
  Ref copy = heap.born(checked(PyObject_CallNoArgs(as_object(type))));
  heap.copy_with_loose_keys(dict, copy.get());
  return copy;
}

/// E.update(D) of such a dict, where E is new and empty.
bool fill_under_keys_that_vary(Heap& heap, PyObject* dict, PyObject* name, const Arguments& arguments) {
  const bool fills = is_among(PyUnicode_AsUTF8(name), " update ") && arguments.values.size() == 1 && arguments.named() == 0 && heap.is_empty_new_dict(dict);
  if (!fills || !heap.has_loose_keys(arguments[0]) || !PyDict_CheckExact(arguments[0])) return false;
  heap.copy_with_loose_keys(arguments[0], dict);
  return true;
}

/// What C code goes over, as a list where it would look up keys that vary.
void hand_items_on(Heap& heap, PyObject* callable, Arguments& arguments) {
  const Iterated iterated = iterated_arguments(callable, arguments.positional());
  for (std::size_t at = iterated.first; at < std::min(iterated.end, arguments.positional()); ++at) arguments.values[at] = items_to_hand_on(heap, arguments[at]);
}

}  // namespace

std::optional<Ref> run_listed(Evaluator& evaluator, PyObject* callable, const Builtin& builtin, Arguments& arguments) {
  Heap& heap = evaluator.heap();
  // These hand the items on: what is in an item is for whoever reads it.
  const bool hands_on = PyType_Check(callable) && is_among(name_of(callable), " zip enumerate reversed list tuple ");
  hand_items_on(heap, callable, arguments);
  require_no_callback_of_new_object(evaluator, callable, arguments);
  guard_copied_attributes(evaluator, callable, arguments);
  if (builtin.kind == BuiltinClass::callback)
    if (std::optional<Ref> result = order_by_evaluating(evaluator, callable, arguments)) return result;
  constexpr std::string_view kTakeIndices = " range islice repeat enumerate permutations combinations product bytes deque ";
  if (PyType_Check(callable) && is_among(name_of(callable), kTakeIndices))
    for (Ref& value : arguments.values) value = evaluator.items().plain_index(value.get());
  if (callable == as_object(&PyList_Type) || callable == as_object(&PyTuple_Type))
    for (Ref& value : arguments.values)
      if (callable == as_object(&PyList_Type) || !PyTuple_CheckExact(value.get())) value = evaluator.hidden_calls().with_numbers_read(value.get());  // a tuple of a tuple is that one
  if (iterates_its_arguments(builtin)) prepare_iterables(evaluator, callable, arguments);
  const bool asks_for_truth = builtin.kind == BuiltinClass::callback && !arguments.values.empty() && arguments[0] == Py_None;  // filter(None, items)
  if (asks_for_truth)
    for (const Ref& value : arguments.values) evaluator.hidden_calls().require_readable(value.get());
  const bool compresses = PyType_Check(callable) && is_among(name_of(callable), " compress ");  // asks the selectors, hands on the rest
  const Iterated iterated = iterated_arguments(callable, arguments.positional());
  // So does C code that only calls a function on them.
  const std::optional<std::size_t> function = builtin.kind == BuiltinClass::callback ? function_called_back(callable, arguments) : std::nullopt;
  for (std::size_t at = 0; at < arguments.values.size(); ++at) {
    Ref& value = arguments.values[at];
    if (callable == as_object(&PyDict_Type) && at >= arguments.positional()) continue;  // dict(name=value) keeps the value as it is
    const bool selects = compresses && at == 1;
    if (hands_on) heap.expose_items(value.get());
    else if (callable == as_object(&_PyWeakref_RefType)) heap.expose_to_walk(value.get());  // looks at no item
    else heap.expose(value.get());
    // Elements must be what the program sees before C code compares or adds them.
    if (function) value = at == *function ? callback_for(evaluator, value.get()) : value;
    else if (builtin.kind != BuiltinClass::structural || selects) value = evaluator.hidden_calls().for_elements(value.get(), at >= iterated.first && at < iterated.end);
    if (builtin.kind == BuiltinClass::element_calling || selects) evaluator.hidden_calls().require_plain(value.get());
  }
  if (arguments.positional() > 0) prepare_items(evaluator, callable, arguments[0]);
  return heap.adopt(evaluator.calls().call_real(callable, arguments));
}

namespace {

Handled call_method(Evaluator& evaluator, PyObject* callable, PyObject* self, Arguments arguments) {
  Ref name = checked(PyObject_GetAttr(callable, names().__name__));
  const TypeTraits& traits = evaluator.heap().traits(self);
  if (traits.role == Recorder::Role::stand_in) {
    if (is_among(PyUnicode_AsUTF8(name.get()), kAnsweredByTensor)) throw GraphBreak(fmt::format("a call of the C method {}", name_of(callable)), advice_on(callable));
    if (std::optional<Ref> result = call_legacy_method(evaluator, self, name.get(), arguments)) return result;
    for (Ref& value : arguments.values) value = evaluator.operators().beside_tensor(evaluator.hidden_calls().with_items_read(value.get()).get(), self);
    Arguments all = arguments;
    all.values.insert(all.values.begin(), Ref::borrow(self));
    PyObject* method = compat::type_lookup(evaluator.visible_type(self), name.get());
    if (method != nullptr) {
      if (std::optional<Ref> result = evaluator.calls().record_differentiable(method, all)) return std::move(*result);
      evaluator.loops().require_few_pieces_of(method, all);
    }
    for (const Ref& value : arguments.values)
      if (evaluator.hidden_calls().holds_number(value.get()))
        if (std::optional<Ref> result = evaluator.calls().call_stand_in_with_numbers(self, name.get(), arguments)) return result;
    for (Ref& value : arguments.values) {
      evaluator.hidden_calls().require_no_hooks(value.get());
      evaluator.heap().expose(value.get());
      value = evaluator.heap().substitute(value.get());
    }
    Ref result = evaluator.calls().call_method_of_stand_in(callable, method, arguments);
    if (result.is(Py_NotImplemented)) throw GraphBreak(fmt::format("{} of what it does not know", name_of(callable)));
    return evaluator.heap().adopt(std::move(result));
  }
  if (is_evaluated_generator(self)) return evaluator.heap().adopt(evaluator.calls().call_real(callable, arguments));
  if (PyObject* unbound = unbound_form(callable, self, name.get())) {
    if (const Builtin* builtin = find_builtin(unbound); builtin != nullptr && builtin->handler != nullptr) {
      arguments.values.insert(arguments.values.begin(), Ref::borrow(self));
      return builtin->handler(evaluator, arguments);
    }
  }
  if (PyType_Check(self)) {
    static const Builtin plain = {BuiltinClass::element_calling};
    // Those of other modules may look at the clock.
    const auto* type = reinterpret_cast<PyTypeObject*>(self);
    const bool of_builtins = !PyType_HasFeature(const_cast<PyTypeObject*>(type), Py_TPFLAGS_HEAPTYPE) && std::string_view(type->tp_name).find('.') == std::string_view::npos;
    const bool built_in = of_builtins || find_builtin(self) != nullptr || is_class_method_of_object(callable, name.get());
    if (name.is(names().__new__) && !built_in) throw GraphBreak(fmt::format("a call of {}", name_of(callable)));
    if (is_among(PyUnicode_AsUTF8(name.get()), " __class_getitem__ ") && !std::ranges::all_of(arguments.values, [&](const Ref& value) { return is_definition(evaluator.heap(), value.get()); }))
      throw GraphBreak(fmt::format("a call of {} with what is no type", name_of(callable)));
    if (built_in && self != reinterpret_cast<PyObject*>(&PyType_Type)) return run_listed(evaluator, callable, plain, arguments);
    throw GraphBreak(fmt::format("a call of the C method {}", name_of(callable)), advice_on(callable));
  }
  static const Builtin reading = {BuiltinClass::element_calling};
  if (traits.atom) {
    if (std::optional<Ref> result = call_method_of_sizes(evaluator, self, name.get())) return result;
    require_no_attribute_in_format(evaluator, self, name.get(), arguments);
    if (PyUnicode_CheckExact(self) && is_among(PyUnicode_AsUTF8(name.get()), " format join ") && arguments.named() == 0)
      if (Ref text = late_text_of_method(evaluator, callable, name.get(), arguments)) return text;
    for (Ref& value : arguments.values) value = evaluator.heap().plain_key(value.get());  // a number would not know a symbol
    return run_listed(evaluator, callable, reading, arguments);
  }
  if (traits.container != Container::none) {
    if (PySet_CheckExact(self))
      if (std::optional<Ref> result = call_set_method(evaluator, self, PyUnicode_AsUTF8(name.get()), arguments)) return result;
    if (arguments.values.empty() && is_among(PyUnicode_AsUTF8(name.get()), " copy "))
      if (std::optional<Ref> copy = copy_under_keys_that_vary(evaluator.heap(), is_method_of_dict(callable, name.get()) ? &PyDict_Type : Py_TYPE(self), self)) return copy;
    if (fill_under_keys_that_vary(evaluator.heap(), self, name.get(), arguments)) return Ref::borrow(Py_None);
    hand_items_on(evaluator.heap(), callable, arguments);
    for (const Ref& value : arguments.values) evaluator.heap().expose(value.get());
    if (!PyAnySet_Check(self) && is_among(PyUnicode_AsUTF8(name.get()), kCompareItems)) {
      evaluator.heap().expose(self);
      if (evaluator.heap().holds_tensor(self))
        if (std::optional<Ref> result = compare_items(evaluator, self, name.get(), arguments)) return result;
      if (arguments.positional() > 0 && is_among(PyUnicode_AsUTF8(name.get()), " index count remove __contains__ ")) evaluator.equality().tell_items_apart(self, arguments[0]);
      else if (arguments.positional() > 0) evaluator.equality().tell_apart(self, arguments[0]);
    }
    if (PyDict_Check(self) || PyAnySet_Check(self)) prepare_lookups(evaluator, self, name.get(), arguments);
    else if (is_among(PyUnicode_AsUTF8(name.get()), " insert pop rotate __getitem__ __delitem__ __mul__ __rmul__ __imul__ ") && !arguments.values.empty())
      arguments.values[0] = evaluator.items().plain_index(arguments[0]);
    if (is_mutating_method(self, name.get())) {
      const bool of_key = PyDict_Check(self) && is_among(PyUnicode_AsUTF8(name.get()), " pop setdefault __setitem__ __delitem__ ");
      if (of_key && (evaluator.heap().has_loose_keys(self) || (arguments.positional() > 0 && evaluator.heap().is_number(arguments[0]))))
        return change_older(evaluator, self, PyUnicode_AsUTF8(name.get()), std::move(arguments));
      if (!is_among(PyUnicode_AsUTF8(name.get()), " move_to_end ") || evaluator.heap().is_born(self)) evaluator.heap().settle_keys(self);
      if (evaluator.heap().is_older(self, "a change")) return change_older(evaluator, self, PyUnicode_AsUTF8(name.get()), std::move(arguments));
      evaluator.heap().require_writable(self, fmt::format("{}(): a change", PyUnicode_AsUTF8(name.get())).c_str());
      if (is_among(PyUnicode_AsUTF8(name.get()), kCompareItems) && !PyAnySet_Check(self))
        for (const Ref& value : arguments.values)
          if (evaluator.equality().has_python_equality(value.get())) throw GraphBreak(fmt::format("C code would call {}.__eq__", Py_TYPE(value.get())->tp_name), kCodeInCHint);
      prepare_iterables(evaluator, callable, arguments);
      if (PyList_Check(self) && PyUnicode_CompareWithASCIIString(name.get(), "sort") == 0 && sort_by_evaluating(evaluator, self, arguments)) return Ref::borrow(Py_None);
      for (Ref& value : arguments.values)
        if (PyFunction_Check(value.get()) && PyUnicode_CompareWithASCIIString(name.get(), "sort") == 0) value = callback_for(evaluator, value.get());
      return evaluator.heap().adopt(evaluator.calls().call_real(callable, arguments));
    }
    if (PyDict_Check(self) && is_method_of_dict(callable, name.get())) evaluator.heap().guard_insertion_order(self);
    const bool by_position = PyDict_Check(self) && is_among(PyUnicode_AsUTF8(name.get()), " values ") && evaluator.heap().expose_values(self);
    if (!by_position && is_among(PyUnicode_AsUTF8(name.get()), " items keys values __iter__ __reversed__ __len__ ")) evaluator.heap().expose_to_walk(self);
    else if (!by_position) evaluator.heap().expose(self);
    static const Builtin structural = {BuiltinClass::structural};
    const bool views = PyDict_Check(self);
    if (!views) evaluator.hidden_calls().require_plain(self);
    if (is_among(PyUnicode_AsUTF8(name.get()), " index count __contains__ __eq__ __ne__ __lt__ __le__ __gt__ __ge__ "))
      for (const Ref& value : arguments.values) evaluator.hidden_calls().require_plain(value.get());
    return run_listed(evaluator, callable, structural, arguments);
  }
  if (PyExceptionInstance_Check(self) && evaluator.heap().is_born(self) && !evaluator.heap().source_of(self)) return evaluator.heap().adopt(evaluator.calls().call_real(callable, arguments));
  if (traits.identity || (evaluator.heap().is_born(self) && !evaluator.heap().source_of(self)))
    if (PyObject* unbound = unbound_form(callable, self, name.get()))
      if (const Builtin* builtin = find_builtin(unbound)) {
        for (Ref& value : arguments.values) value = evaluator.heap().plain_key(value.get());
        return run_listed(evaluator, callable, *builtin, arguments);
      }
  const bool view = PyDictViewSet_Check(self) || PyDictValues_Check(self);
  if (Ref mapping = evaluator.heap().behind_proxy(self); mapping && is_among(PyUnicode_AsUTF8(name.get()), " get items keys values copy __getitem__ __contains__ __len__ __iter__ "))
    return evaluator.call_now(evaluator.attributes().load(mapping.get(), name.get()).get(), std::move(arguments));
  if (Py_TYPE(self) == &PyDictProxy_Type && evaluator.heap().is_born(self)) return read_proxy(evaluator, callable, arguments);
  if (view) evaluator.heap().expose(self);
  if ((view || traits.iterator || PySlice_Check(self)) && evaluator.heap().is_born(self)) return run_listed(evaluator, callable, reading, arguments);
  if (name.is(names().__init__) && traits.python_class && find_builtin(callable) == nullptr) {
    evaluator.heap().require_writable(self, "__init__");
    return run_listed(evaluator, callable, reading, arguments);
  }
  throw GraphBreak(fmt::format("a call of the C method {}", name_of(callable)), advice_on(callable));
}

}  // namespace

Handled call_builtin(Evaluator& evaluator, PyObject* callable, Arguments arguments) {
  if (is_function_of_number(evaluator, callable, arguments)) return evaluator.calls().call_recorder(callable, arguments);
  if (PyType_Check(callable) && arguments.values.size() == 1 && arguments.named() == 0)
    if (std::optional<Ref> copy = copy_under_keys_that_vary(evaluator.heap(), reinterpret_cast<PyTypeObject*>(callable), arguments[0])) return copy;
  if (const Builtin* builtin = find_builtin(callable)) {
    if (std::optional<Ref> result = convert(evaluator, callable, *builtin, arguments)) return result;
    std::optional<Ref> result = builtin->handler ? builtin->handler(evaluator, arguments) : run_listed(evaluator, callable, *builtin, arguments);
    if (!result) result = evaluator.heap().adopt(evaluator.calls().call_real(callable, arguments));
    if (PyType_Check(callable) && Py_TYPE(result->get()) == reinterpret_cast<PyTypeObject*>(callable) && builtin->handler == nullptr && !evaluator.heap().traits(result->get()).atom)
      evaluator.heap().born(*result);
    return result;
  }
  PyObject* self = self_of(callable);
  if (evaluator.calls().recorder_takes(callable)) return evaluator.calls().record(callable, std::move(arguments));
  if (self == nullptr && is_descriptor(callable)) {
    if (arguments.values.empty()) throw GraphBreak(fmt::format("{} without its object", name_of(callable)));
    Ref owner = arguments.values.front();
    if (evaluator.is_stand_in(owner.get())) return evaluator.calls().call_recorder(callable, arguments);
    arguments.values.erase(arguments.values.begin());
    Ref bound = checked(Py_TYPE(callable)->tp_descr_get(callable, owner.get(), reinterpret_cast<PyObject*>(Py_TYPE(owner.get()))));
    return call_method(evaluator, bound.get(), owner.get(), std::move(arguments));
  }
  if (self == nullptr || PyModule_Check(self)) {
    if (const Ref substitute = substitute_for(callable)) return evaluator.call_now(substitute.get(), std::move(arguments));
    throw GraphBreak(fmt::format("a call of the C function {}", name_of(callable)), advice_on(callable));
  }
  return call_method(evaluator, callable, self, std::move(arguments));
}

/// add() and pop() of a set of this capture in which a number varies, or is going to.
Handled call_set_method(Evaluator& evaluator, PyObject* set, std::string_view name, const Arguments& arguments) {
  if (evaluator.heap().source_of(set) || !evaluator.heap().is_born(set) || arguments.named() != 0) return std::nullopt;
  if (name == "pop" && arguments.values.empty() && evaluator.heap().loose_item(set) != nullptr) return evaluator.heap().adopt(checked(PySet_Pop(set)));
  if (name != "add" || arguments.values.size() != 1 || !evaluator.hidden_calls().holds_number(arguments[0])) return std::nullopt;
  evaluator.heap().require_writable(set, "add(): a change");
  evaluator.building().add_to_set(set, arguments[0]);
  return Ref::borrow(Py_None);
}

}  // namespace tenon::python
