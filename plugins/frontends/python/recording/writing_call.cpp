#include "python/recording/writing_call.h"

#include <fmt/format.h>

#include "python/library/numpy_api.h"
#include "python/objects/graph_break.h"

namespace tenon::python {
namespace {

/// The position of the parameter `inplace` of a function written in Python.
std::optional<Py_ssize_t> inplace_parameter(PyObject* callable) {
  if (!PyFunction_Check(callable)) return std::nullopt;
  auto* code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(callable));
  for (Py_ssize_t i = 0; i < code->co_argcount; ++i)
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(code->co_localsplusnames, i), "inplace") == 0) return i;
  return std::nullopt;
}

Ref without(PyObject* dict, const char* key) {
  Ref copy = checked(PyDict_Copy(dict));
  checked(PyDict_DelItemString(copy.get(), key));
  return copy;
}

/// The one tensor that `out=` names.
PyObject* single_output(PyObject* out) {
  if (!PyTuple_Check(out)) return out;
  if (PyTuple_GET_SIZE(out) != 1) throw GraphBreak("out= with several tensors");
  return PyTuple_GET_ITEM(out, 0);
}

}  // namespace

bool asks_in_place(PyObject* callable, PyObject* kwargs) { return inplace_parameter(callable) && !(kwargs && PyDict_GetItemString(kwargs, "out")); }

std::optional<WritingCall> as_writing_call(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs) {
  PyObject* out = kwargs ? PyDict_GetItemString(kwargs, "out") : nullptr;
  if (out == Py_None) return WritingCall{Ref::borrow(args), without(kwargs, "out"), {}, WritingCall::Kind::none};
  if (out) return WritingCall{Ref::borrow(args), without(kwargs, "out"), Ref::borrow(single_output(out)), WritingCall::Kind::output};
  if (function.ufunc) {
    const Py_ssize_t operands = reinterpret_cast<PyUFuncObject*>(callable)->nin;
    if (PyTuple_GET_SIZE(args) <= operands) return std::nullopt;
    if (PyTuple_GET_SIZE(args) != operands + 1) throw GraphBreak("out= with several arrays");
    Ref inputs = checked(PyTuple_GetSlice(args, 0, operands));
    PyObject* last = PyTuple_GET_ITEM(args, operands);
    if (last == Py_None) return WritingCall{inputs, Ref::borrow(kwargs), {}, WritingCall::Kind::none};
    if (function.has(Trait::warns_of_placed_output)) throw GraphBreak("an output by position, of which NumPy warns");
    return WritingCall{inputs, Ref::borrow(kwargs), Ref::borrow(last), WritingCall::Kind::output};
  }
  if (const auto at = inplace_parameter(callable)) {
    PyObject* flag = kwargs ? PyDict_GetItemString(kwargs, "inplace") : nullptr;
    Ref rest = flag ? without(kwargs, "inplace") : Ref::borrow(kwargs);
    Ref inputs = Ref::borrow(args);
    if (*at < PyTuple_GET_SIZE(args)) {
      flag = PyTuple_GET_ITEM(args, *at);
      inputs = checked(PyTuple_GetSlice(args, 0, *at));
    }
    if (flag && checked(PyObject_IsTrue(flag))) {
      if (PyTuple_GET_SIZE(args) == 0) throw GraphBreak("inplace=True with the tensor as a keyword");
      return WritingCall{inputs, rest, Ref::borrow(PyTuple_GET_ITEM(args, 0)), WritingCall::Kind::output};
    }
    return std::nullopt;
  }
  if (!function.writes) return std::nullopt;
  if (PyTuple_GET_SIZE(args) == 0) throw GraphBreak(fmt::format("{} without a tensor to write into", function.name));
  return WritingCall{Ref::borrow(args), Ref::borrow(kwargs), Ref::borrow(PyTuple_GET_ITEM(args, 0)), WritingCall::Kind::itself};
}

}  // namespace tenon::python
