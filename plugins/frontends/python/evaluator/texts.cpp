#include "python/evaluator/texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "python/evaluator/evaluator.h"
#include "python/objects/imported.h"

// Texts of objects: str(), repr(), and what is made of numbers that vary.

namespace tenon::python {

Ref Texts::late(const char* module, const char* function, std::initializer_list<PyObject*> arguments) {
  if (std::ranges::none_of(arguments, [&](PyObject* argument) { return core_.hidden_calls().holds_number(argument); })) return {};
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
Ref Texts::of_container(PyObject* value) {
  const auto items = items_within(value);
  if (!items || std::ranges::none_of(*items, [&](PyObject* item) { return heap_.is_number(item); })) return {};
  Ref function = checked(PyObject_GetAttrString(checked(imported("tenon._texts")).get(), "text_of"));
  return core_.call_now(function.get(), {value});
}

Ref Texts::to_string(PyObject* value, PyObject* method_name) {
  const bool as_code = method_name == names().__repr__;
  if (!as_code && heap_.is_number(value) && core_.visible_type(value) == &PyUnicode_Type) return Ref::borrow(value);
  if (Ref text = late("builtins", as_code ? "repr" : "str", {value})) return text;
  if (Ref text = of_container(value)) return text;
  const TypeTraits& traits = heap_.traits(value);
  if (traits.role == Recorder::Role::stand_in) throw GraphBreak("the values of a tensor are turned into text", kTextHint);
  if (traits.python_class) {
    PyObject* method = heap_.type_attribute(Py_TYPE(value), method_name);
    if (method != nullptr && method == compat::type_lookup(&PyBaseObject_Type, names().__str__)) method = heap_.type_attribute(Py_TYPE(value), names().__repr__);
    if (is_python_function(method)) {
      Ref text = core_.call_now(method, {value});
      if (PyType_IsSubtype(core_.visible_type(text.get()), &PyUnicode_Type)) return text;
      PyErr_Format(PyExc_TypeError, "%U returned non-string (type %.200s)", method_name, core_.visible_type(text.get())->tp_name);
      throw PythonError();
    }
    // object's own text holds the address.
    if (traits.container == Container::none && !traits.identity && !PyExceptionInstance_Check(value)) throw GraphBreak(fmt::format("the text of a {}", Py_TYPE(value)->tp_name));
  }
  Ref seen = core_.hidden_calls().for_elements(value);
  core_.hidden_calls().require_plain(value);
  return checked(as_code ? PyObject_Repr(seen.get()) : PyObject_Str(seen.get()));
}

/// Whether the methods with which a tensor formats itself are the library's: that stays so, or there is another capture.
bool Texts::is_formatted_by_library(PyObject* tensor) {
  PyTypeObject* type = recorder_.apparent_type(tensor);
  if (!heap_.traits(type).python_class) return true;
  static PyObject* const methods[] = {names().__format__, PyUnicode_InternFromString("dim"), PyUnicode_InternFromString("item")};
  return std::ranges::all_of(methods, [&](PyObject* name) {
    PyObject* found = heap_.type_attribute(type, name);
    return found != nullptr && recorder_.is_own(found);
  });
}

Ref Texts::formatted(PyObject* value, PyObject* spec) {
  Ref empty = checked(PyUnicode_FromString(""));
  if (Ref text = late("builtins", "format", {value, spec ? spec : empty.get()})) return text;
  const TypeTraits& traits = heap_.traits(value);
  if (traits.role == Recorder::Role::stand_in) {
    if (is_formatted_by_library(value))
      if (Ref number = recorder_.number_in_format(value, spec ? spec : empty.get())) return formatted(number.get(), spec);
    throw GraphBreak("the values of a tensor are turned into text", kTextHint);
  }
  PyObject* method = traits.python_class ? heap_.type_attribute(Py_TYPE(value), names().__format__) : nullptr;
  if (is_python_function(method)) {
    Ref text = core_.call_now(method, {value, spec ? spec : empty.get()});
    if (!PyType_IsSubtype(core_.visible_type(text.get()), &PyUnicode_Type)) {
      PyErr_Format(PyExc_TypeError, "__format__ must return a str, not %.200s", core_.visible_type(text.get())->tp_name);
      throw PythonError();
    }
    return text;
  }
  const bool plain = spec != nullptr && PyUnicode_Check(spec) && PyUnicode_GET_LENGTH(spec) == 0;
  const bool usual = compat::type_lookup(Py_TYPE(value), names().__format__) == compat::type_lookup(&PyBaseObject_Type, names().__format__);
  if (!traits.atom && usual && (spec == nullptr || plain)) return to_string(value, names().__str__);
  heap_.expose(value);
  core_.hidden_calls().require_plain(value);
  return checked(PyObject_Format(value, spec));
}

void Texts::op_format(Frame&, const Instruction& i) {
  // FORMAT_VALUE: two bits of conversion (0 none, 1 str, 2 repr, 3 ascii), bit 2 for a format specification on the stack.
  const bool has_spec = i.op == Op::format_with_spec || (i.op == Op::format_value && (i.arg & 4));
  const int conversion = i.op == Op::format_value ? i.arg & 3 : i.op == Op::convert_value ? i.arg : 0;
  Ref spec = has_spec ? core_.pop() : Ref();
  Ref value = core_.pop();
  if (conversion == 1) value = to_string(value.get(), names().__str__);
  if (conversion == 2) value = to_string(value.get(), names().__repr__);
  if (conversion == 3) {
    Ref text = to_string(value.get(), names().__repr__);
    Ref bytes = checked(PyUnicode_AsEncodedString(text.get(), "ascii", "backslashreplace"));
    value = checked(PyUnicode_DecodeASCII(PyBytes_AS_STRING(bytes.get()), PyBytes_GET_SIZE(bytes.get()), "strict"));
  }
  if (i.op == Op::convert_value) {
    core_.push(std::move(value));
    return;
  }
  core_.push(formatted(value.get(), spec.get()));
}

}  // namespace tenon::python
