#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "python/evaluator/evaluator.h"
#include "python/objects/imported.h"

// Texts of objects: str(), repr(), and what is made of numbers that vary.

namespace tenon::python {

Ref Evaluator::late_text(const char* module, const char* function, std::initializer_list<PyObject*> arguments) {
  if (std::ranges::none_of(arguments, [&](PyObject* argument) { return holds_number(argument); })) return {};
  Ref tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(arguments.size())));
  for (std::size_t at = 0; at < arguments.size(); ++at) PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(at), Py_NewRef(arguments.begin()[at]));
  return recorder_.late_text(checked(PyObject_GetAttrString(checked(imported(module)).get(), function)).get(), tuple.get());
}

namespace {

constexpr int kDeepest = 16;
constexpr std::size_t kMostItems = 256;

/// What a list, tuple or dict holds, in such inside of it, too; nothing where that is a lot, or it holds itself.
std::optional<std::vector<PyObject*>> items_within(PyObject* container, int depth = 0) {
  std::vector<PyObject*> found;
  const auto take = [&](PyObject* item) {
    found.push_back(item);
    const auto inside = depth < kDeepest ? items_within(item, depth + 1) : std::nullopt;
    if (inside) found.insert(found.end(), inside->begin(), inside->end());
    return inside && found.size() <= kMostItems;
  };
  if (PyTuple_CheckExact(container) || PyList_CheckExact(container)) {
    for (Py_ssize_t at = 0; at < PySequence_Fast_GET_SIZE(container); ++at)
      if (!take(PySequence_Fast_GET_ITEM(container, at))) return std::nullopt;
  } else if (PyDict_CheckExact(container)) {
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t position = 0; PyDict_Next(container, &position, &key, &value);)
      if (!take(value)) return std::nullopt;
  }
  return found;
}

}  // namespace

/// The text of a container that holds numbers that vary; empty for others.
Ref Evaluator::text_of_container(PyObject* value) {
  const auto items = items_within(value);
  if (!items || std::ranges::none_of(*items, [&](PyObject* item) { return heap_.is_number(item); })) return {};
  Ref function = checked(PyObject_GetAttrString(checked(imported("tenon._texts")).get(), "text_of"));
  return call_now(function.get(), {value});
}

Ref Evaluator::to_string(PyObject* value, PyObject* method_name) {
  const bool as_code = method_name == names().__repr__;
  if (!as_code && heap_.is_number(value) && visible_type(value) == &PyUnicode_Type) return Ref::borrow(value);
  if (Ref text = late_text("builtins", as_code ? "repr" : "str", {value})) return text;
  if (Ref text = text_of_container(value)) return text;
  const TypeTraits& traits = heap_.traits(value);
  if (traits.role == Recorder::Role::stand_in) throw GraphBreak("the values of a tensor are turned into text");
  if (traits.python_class) {
    PyObject* method = heap_.type_attribute(Py_TYPE(value), method_name);
    if (method_name == names().__str__ && !is_python_function(method) && !PyExceptionInstance_Check(value)) method = heap_.type_attribute(Py_TYPE(value), names().__repr__);
    if (is_python_function(method)) {
      Ref text = call_now(method, {value});
      if (PyType_IsSubtype(visible_type(text.get()), &PyUnicode_Type)) return text;
      PyErr_Format(PyExc_TypeError, "%U returned non-string (type %.200s)", method_name, visible_type(text.get())->tp_name);
      throw PythonError();
    }
    // object's own text holds the address.
    if (traits.container == Container::none && !traits.identity && !PyExceptionInstance_Check(value)) throw GraphBreak(fmt::format("the text of a {}", Py_TYPE(value)->tp_name));
  }
  Ref seen = for_elements(value);
  require_plain(value);
  return checked(as_code ? PyObject_Repr(seen.get()) : PyObject_Str(seen.get()));
}

}  // namespace tenon::python
