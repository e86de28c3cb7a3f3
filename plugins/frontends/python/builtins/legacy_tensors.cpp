#include "python/builtins/legacy_tensors.h"

#include <string>
#include <string_view>

#include "python/objects/imported.h"
#include "python/objects/names.h"

namespace tenon::python {
namespace {

Ref torch_attribute(const char* name) { return checked(PyObject_GetAttrString(checked(imported("torch")).get(), name)); }

bool is_called(PyObject* name, const char* text) { return PyUnicode_CompareWithASCIIString(name, text) == 0; }

/// One list or tuple: numbers. A torch.Size is no such tuple.
bool is_data(Evaluator& evaluator, const Arguments& arguments) {
  if (arguments.named() != 0 || arguments.positional() != 1) return false;
  const TypeTraits& traits = evaluator.heap().traits(arguments[0]);
  return traits.exact && (traits.container == Container::list || traits.container == Container::tuple);
}

bool is_sizes(Evaluator& evaluator, const Arguments& arguments) {
  if (arguments.named() != 0 || arguments.values.empty()) return false;
  if (arguments.values.size() == 1 && std::string_view(Py_TYPE(arguments[0])->tp_name) == "torch.Size") return true;
  for (const Ref& value : arguments.values)
    if (!PyLong_CheckExact(value.get()) && !(evaluator.heap().is_number(value.get()) && evaluator.visible_type(value.get()) == &PyLong_Type)) return false;
  return true;
}

Ref call_with_dtype(Evaluator& evaluator, const char* function, Arguments arguments, Ref dtype) {
  arguments.values.push_back(std::move(dtype));
  arguments.names = checked(Py_BuildValue("(s)", "dtype"));
  return evaluator.calls().call_recorder(torch_attribute(function).get(), arguments);
}

Ref call_method_of(Evaluator& evaluator, PyObject* stand_in, const char* method, const Arguments& arguments) {
  Ref bound = evaluator.attributes().load(stand_in, checked(PyUnicode_InternFromString(method)).get());
  return evaluator.call_now(bound.get(), arguments);
}

/// The dtype that `x.type(wanted)` converts to, of a class or its name, on the CPU; empty for anything else.
Ref dtype_on_cpu(PyObject* wanted) {
  Ref type = Ref::borrow(wanted);
  if (PyUnicode_Check(wanted)) {
    const std::string name = PyUnicode_AsUTF8(wanted);
    if (!name.starts_with("torch.") || !name.ends_with("Tensor") || name.find('.', 6) != std::string::npos) return {};
    type = torch_attribute(name.c_str() + 6);
  }
  if (!is_tensor_type(type.get())) return {};
  for (const char* elsewhere : {"is_cuda", "is_sparse"})
    if (!checked(PyObject_GetAttrString(type.get(), elsewhere)).is(Py_False)) return {};
  return checked(PyObject_GetAttrString(type.get(), "dtype"));
}

std::optional<Ref> convert_by_type(Evaluator& evaluator, PyObject* stand_in, const Arguments& arguments) {
  if (arguments.named() != 0 || arguments.positional() > 1) return std::nullopt;
  Ref alike = empty_like_stand_in(stand_in);
  if (!alike) return std::nullopt;
  if (arguments.values.empty()) return checked(PyObject_CallMethod(alike.get(), "type", nullptr));
  Ref dtype = dtype_on_cpu(arguments[0]);
  if (!dtype || !checked(PyObject_GetAttrString(alike.get(), "is_cpu")).is(Py_True)) return std::nullopt;
  Arguments given;
  given.values.push_back(std::move(dtype));
  return call_method_of(evaluator, stand_in, "to", given);
}

}  // namespace

bool is_tensor_type(PyObject* type) { return PyType_Check(type) && std::string_view(Py_TYPE(type)->tp_name) == "torch.tensortype"; }

Ref empty_like_stand_in(PyObject* stand_in) {
  Ref dtype = checked(PyObject_GetAttrString(stand_in, "dtype"));
  if (std::string_view(dtype.type()->tp_name) != "torch.dtype") return {};
  Ref size = checked(Py_BuildValue("(i)", 0)), options = checked(PyDict_New());
  for (const char* name : {"dtype", "device", "layout"}) checked(PyDict_SetItemString(options.get(), name, checked(PyObject_GetAttrString(stand_in, name)).get()));
  return checked(PyObject_Call(torch_attribute("empty").get(), size.get(), options.get()));
}

std::optional<Ref> make_legacy_tensor(Evaluator& evaluator, PyTypeObject* type, const Arguments& arguments) {
  const bool imported = PyDict_GetItemString(PyImport_GetModuleDict(), "torch") != nullptr;
  const bool plain = imported && std::string_view(type->tp_name) == "Tensor" && torch_attribute("Tensor").is(as_object(type));
  if (!plain && !is_tensor_type(as_object(type))) return std::nullopt;
  const bool data = is_data(evaluator, arguments);
  if (!data && !is_sizes(evaluator, arguments)) return std::nullopt;
  Ref dtype = plain ? checked(PyObject_CallNoArgs(torch_attribute("get_default_dtype").get())) : dtype_on_cpu(as_object(type));
  if (!dtype) return std::nullopt;
  return call_with_dtype(evaluator, data ? "tensor" : "empty", arguments, std::move(dtype));
}

std::optional<Ref> call_legacy_method(Evaluator& evaluator, PyObject* stand_in, PyObject* name, const Arguments& arguments) {
  if (is_called(name, "type")) return convert_by_type(evaluator, stand_in, arguments);
  if (!is_called(name, "new")) return std::nullopt;
  if (is_data(evaluator, arguments)) return call_method_of(evaluator, stand_in, "new_tensor", arguments);
  return is_sizes(evaluator, arguments) ? std::optional<Ref>(call_method_of(evaluator, stand_in, "new_empty", arguments)) : std::nullopt;
}

}  // namespace tenon::python
