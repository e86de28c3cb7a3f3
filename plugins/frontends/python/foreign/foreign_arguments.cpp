#include "python/foreign/foreign_arguments.h"

#include <fmt/format.h>

#include <cstring>

#include "python/library/numpy_api.h"
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
  const TorchLibrary* torch = torch_library();
  if (std::strcmp(name, "memory_format") == 0 || std::strcmp(name, "layout") == 0) return true;  // strides come from the twin
  if (std::strcmp(name, "device") == 0) {
    if (value == Py_None) return true;
    Ref device = torch ? checked(PyObject_CallOneArg(torch->device.get(), value)) : Ref::borrow(value);
    Ref kind = checked(PyObject_GetAttrString(device.get(), torch ? "type" : "__class__"));
    if (torch ? PyUnicode_CompareWithASCIIString(kind.get(), "cpu") == 0 : false) return true;
    if (PyUnicode_Check(value) && PyUnicode_CompareWithASCIIString(value, "cpu") == 0) return true;
    throw GraphBreak("a tensor on another device than the CPU");
  }
  for (const char* off : {"requires_grad", "pin_memory", "non_blocking", "subok"})
    if (std::strcmp(name, off) == 0) {
      if (value == Py_False || std::strcmp(name, "non_blocking") == 0 || std::strcmp(name, "subok") == 0) return true;
      throw GraphBreak(fmt::format("{}=True in a tensor operation", name));
    }
  return false;
}

/// `x.to("cpu")`, `x.to(torch.device("cpu"))`.
bool is_cpu_device(PyObject* object) {
  const TorchLibrary* torch = torch_library();
  if (!torch || reinterpret_cast<PyObject*>(Py_TYPE(object)) != torch->device.get()) return false;
  Ref kind = checked(PyObject_GetAttrString(object, "type"));
  if (PyUnicode_CompareWithASCIIString(kind.get(), "cpu") != 0) throw GraphBreak("a tensor on another device than the CPU");
  return true;
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
  if (PyComplex_Check(object)) throw GraphBreak("a complex number as an argument of a tensor operation");
  throw GraphBreak(fmt::format("an argument of type {} in a tensor operation", Py_TYPE(object)->tp_name));
}

ops::ForeignCall foreign_call(std::string_view name, ops::Flavour flavour, PyObject* args, PyObject* kwargs, const ValueOf& value_of) {
  ops::ForeignCall call;
  call.name = name;
  call.flavour = flavour;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
    PyObject* argument = PyTuple_GET_ITEM(args, i);
    if (is_cpu_device(argument) || is_memory_format(argument)) continue;
    call.positional.push_back(foreign_argument(argument, flavour, value_of));
    // In a subscript a list is one index, where a tuple is several.
    if (i == 1 && PyList_Check(argument) && (name.ends_with("__getitem__") || name.ends_with("__setitem__")))
      call.positional.back() = {ops::ForeignList{std::move(call.positional.back())}};
  }
  PyObject *key = nullptr, *value = nullptr;
  Py_ssize_t position = 0;
  while (kwargs && PyDict_Next(kwargs, &position, &key, &value)) {
    const char* keyword = PyUnicode_AsUTF8(key);
    if (says_nothing(keyword, value)) continue;
    call.keyword.emplace_back(keyword, foreign_argument(value, flavour, value_of));
  }
  return call;
}

}  // namespace tenon::python
