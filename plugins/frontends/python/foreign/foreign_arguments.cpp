#include "python/foreign/foreign_arguments.h"

#include <fmt/format.h>

#include <cstring>

#include "python/library/numpy_api.h"
#include "python/library/torch_device.h"
#include "python/library/torch_library.h"
#include "python/objects/graph_break.h"
#include "python/objects/imported.h"
#include "python/symbols/symbolic_int.h"

namespace tenon::python {
namespace {

std::optional<DType> numpy_dtype(PyArray_Descr* descriptor) {
  if (!PyDataType_ISNOTSWAPPED(descriptor)) throw GraphBreak("a byte-swapped dtype");
  auto dtype = dtype_of_numpy(descriptor->type_num);
  if (!dtype) throw GraphBreak("a NumPy dtype that graphs do not carry");
  return dtype;
}

/// A dtype as torch, NumPy or Python names it: torch.float32, numpy.dtype("f4"), numpy.float32, float.
std::optional<DType> dtype_argument(PyObject* object) {
  if (const TorchLibrary* torch = torch_library(); torch && reinterpret_cast<PyObject*>(Py_TYPE(object)) == torch->dtype.get()) {
    auto dtype = torch->dtype_of(object);
    if (!dtype) throw GraphBreak("a torch dtype that graphs do not carry");
    return dtype;
  }
  if (PyArray_DescrCheck(object)) return numpy_dtype(reinterpret_cast<PyArray_Descr*>(object));
  if (!PyType_Check(object)) return std::nullopt;
  if (object == reinterpret_cast<PyObject*>(&PyBool_Type)) return DType::b8;
  if (object == reinterpret_cast<PyObject*>(&PyLong_Type)) return DType::i64;
  if (object == reinterpret_cast<PyObject*>(&PyFloat_Type)) return DType::f64;
  if (object == reinterpret_cast<PyObject*>(&PyComplex_Type)) return DType::c128;
  if (!PyType_IsSubtype(reinterpret_cast<PyTypeObject*>(object), &PyGenericArrType_Type)) return std::nullopt;
  Ref descriptor = checked(reinterpret_cast<PyObject*>(PyArray_DescrFromTypeObject(object)));
  return numpy_dtype(reinterpret_cast<PyArray_Descr*>(descriptor.get()));
}

std::int64_t integer(PyObject* object) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow) throw GraphBreak("an integer of more than 64 bits as an argument of a tensor operation");
  return value;
}

std::optional<ir::Dim> slice_part(PyObject* object) {
  if (object == Py_None) return std::nullopt;
  if (is_symbolic_int(object)) return integer_of(object);
  if (!PyIndex_Check(object)) throw GraphBreak("a slice bound that is no integer");
  Ref number = checked(PyNumber_Index(object));
  return ir::Dim(integer(number.get()));
}

ops::ForeignArgument sequence(PyObject* object, ops::Flavour flavour, const ValueOf& value_of) {
  Ref fast = checked(PySequence_Fast(object, "a sequence"));
  ops::ForeignList list;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.get()); ++i)
    list.push_back(foreign_argument(PySequence_Fast_GET_ITEM(fast.get(), i), flavour, value_of));
  return {list};
}

/// Whether a keyword says nothing that the graph would have to know.
bool says_nothing(const char* name, PyObject* value) {
  if (std::strcmp(name, "memory_format") == 0 || std::strcmp(name, "layout") == 0) return true;  // strides come from the twin
  for (const char* off : {"requires_grad", "pin_memory", "non_blocking", "subok"})
    if (std::strcmp(name, off) == 0) {
      if (value == Py_False || (value == Py_True && std::strcmp(name, "non_blocking") == 0) || std::strcmp(name, "subok") == 0) return true;
      throw GraphBreak(fmt::format("{}=True in a tensor operation", name));
    }
  return false;
}

/// A device as the catalogue names it; nothing for the host beside tensors of the host.
std::optional<ops::ForeignArgument> device_word(PyObject* object, ops::Flavour flavour, ir::Device here) {
  if (object == Py_None) return std::nullopt;
  const TorchLibrary* torch = flavour == ops::Flavour::torch ? torch_library() : nullptr;
  if (!torch) {
    if (PyUnicode_Check(object) && PyUnicode_CompareWithASCIIString(object, "cpu") == 0) return std::nullopt;
    throw GraphBreak("an array on another device than the CPU");
  }
  require_one_device(*torch, object);
  const ir::Device device = device_meant_by(*torch, object);
  if (device.is_host() && here.is_host()) return std::nullopt;
  return ops::ForeignArgument{ir::device_text(device)};
}

/// np._CopyMode, a kind of bool: what a call asks for as `copy`. None: only where it is needed.
std::optional<ops::ForeignArgument> copy_mode(PyObject* object) {
  static PyObject* const mode = [] {
    PyObject* found = PyObject_GetAttrString(checked(imported("numpy")).get(), "_CopyMode");
    PyErr_Clear();
    return found;
  }();
  if (mode == nullptr || reinterpret_cast<PyObject*>(Py_TYPE(object)) != mode) return std::nullopt;
  Ref value = checked(PyObject_GetAttrString(object, "value"));
  if (!PyLong_Check(value.get()) || PyLong_AsLong(value.get()) == 2) return ops::ForeignArgument{std::monostate{}};
  return ops::ForeignArgument{PyLong_AsLong(value.get()) == 1};
}

bool is_torch_device(PyObject* object) {
  const TorchLibrary* torch = torch_library();
  return torch && reinterpret_cast<PyObject*>(Py_TYPE(object)) == torch->device.get();
}

bool is_memory_format(PyObject* object) {
  const TorchLibrary* torch = torch_library();
  return torch && reinterpret_cast<PyObject*>(Py_TYPE(object)) == torch->memory_format.get();
}

}  // namespace

ops::ForeignArgument foreign_argument(PyObject* object, ops::Flavour flavour, const ValueOf& value_of) {
  if (auto value = value_of(object)) return {*value};
  if (is_symbolic_int(object)) return {*integer_of(object)};
  if (object == Py_None) return {std::monostate{}};
  if (PyBool_Check(object)) return {object == Py_True};
  if (PyLong_Check(object)) return {ir::Dim(integer(object))};
  if (PyFloat_Check(object)) return {PyFloat_AS_DOUBLE(object)};
  if (PyUnicode_Check(object)) return {std::string(PyUnicode_AsUTF8(object))};
  if (object == Py_Ellipsis) return {ops::ForeignEllipsis{}};
  if (PySlice_Check(object)) {
    auto* slice = reinterpret_cast<PySliceObject*>(object);
    return {ops::ForeignSlice{slice_part(slice->start), slice_part(slice->stop), slice_part(slice->step)}};
  }
  if (auto dtype = dtype_argument(object)) return {*dtype};
  if (PyList_Check(object) || PyTuple_Check(object) || PyRange_Check(object)) return sequence(object, flavour, value_of);
  if (auto mode = copy_mode(object)) return *mode;
  if (PyComplex_CheckExact(object)) return {std::complex<double>(PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object))};
  throw GraphBreak(fmt::format("an argument of type {} in a tensor operation", Py_TYPE(object)->tp_name));
}

PyObject* device_argument(const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  PyObject* named = kwargs && function.flavour == ops::Flavour::torch ? PyDict_GetItemString(kwargs, "device") : nullptr;
  for (Py_ssize_t i = 0; !named && i < PyTuple_GET_SIZE(args); ++i)
    if (PyObject* argument = PyTuple_GET_ITEM(args, i); is_torch_device(argument) || (PyUnicode_Check(argument) && function.has(Trait::moves))) named = argument;
  return named == Py_None ? nullptr : named;
}

ops::ForeignCall foreign_call(const ForeignFunction& function, ir::Device here, PyObject* args, PyObject* kwargs, const ValueOf& value_of) {
  const std::string_view name = function.name;
  const ops::Flavour flavour = function.flavour;
  ops::ForeignCall call;
  call.name = name;
  call.flavour = flavour;
  call.any_device = flavour == ops::Flavour::torch;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
    PyObject* argument = PyTuple_GET_ITEM(args, i);
    if (is_memory_format(argument)) continue;
    if (is_torch_device(argument) || (PyUnicode_Check(argument) && function.has(Trait::moves))) {
      if (auto word = device_word(argument, flavour, here)) call.positional.push_back(std::move(*word));
      continue;
    }
    call.positional.push_back(foreign_argument(argument, flavour, value_of));
    // In a subscript a list is one index, where a tuple is several.
    if (i == 1 && PyList_Check(argument) && (name.ends_with("__getitem__") || name.ends_with("__setitem__")))
      call.positional.back() = {ops::ForeignList{std::move(call.positional.back())}};
  }
  PyObject *key = nullptr, *value = nullptr;
  Py_ssize_t position = 0;
  while (kwargs && PyDict_Next(kwargs, &position, &key, &value)) {
    const char* keyword = PyUnicode_AsUTF8(key);
    if (!value_of(value) && says_nothing(keyword, value)) continue;
    if (std::strcmp(keyword, "device") == 0) {
      if (auto word = device_word(value, flavour, here)) call.keyword.emplace_back(keyword, std::move(*word));
      continue;
    }
    call.keyword.emplace_back(keyword, foreign_argument(value, flavour, value_of));
  }
  return call;
}

}  // namespace tenon::python
