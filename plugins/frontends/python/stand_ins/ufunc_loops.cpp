#include "python/stand_ins/ufunc_loops.h"

#include <fmt/format.h>

#include <algorithm>

#include "python/library/numpy_api.h"
#include "python/objects/graph_break.h"
#include "python/segments/exception_text.h"
#include "python/stand_ins/symbolic_scalar.h"
#include "python/symbols/symbolic_int.h"

namespace tenon::python {
namespace {

constexpr const char* kChoosing[] = {"dtype", "signature", "sig", "casting"};

PyObject* keyword(PyObject* kwargs, const char* name) {
  PyObject* value = kwargs ? PyDict_GetItemString(kwargs, name) : nullptr;
  return value == Py_None ? nullptr : value;
}

bool is_any(PyObject* object, PyTypeObject* type) { return PyType_IsSubtype(Py_TYPE(object), type); }

/// What NumPy's promotion sees of an operand: a dtype, or int, float or complex for a number that has no say.
Ref seen_of(PyObject* operand, const StandIns& stand_ins) {
  if (auto index = stand_ins.find(operand)) return checked(reinterpret_cast<PyObject*>(PyArray_DescrFromType(numpy_type(stand_ins[*index].dtype))));
  if (is_symbolic_scalar(operand)) return Ref::borrow(reinterpret_cast<PyObject*>(scalar_of(operand).integral ? &PyLong_Type : &PyFloat_Type));
  if (is_symbolic_int(operand)) return Ref::borrow(reinterpret_cast<PyObject*>(&PyLong_Type));
  if (!PyArray_IsScalar(operand, Generic) && !PyBool_Check(operand))
    for (PyTypeObject* type : {&PyLong_Type, &PyFloat_Type, &PyComplex_Type})
      if (is_any(operand, type)) return Ref::borrow(reinterpret_cast<PyObject*>(type));
  if (!stand_ins.among(operand, nullptr).empty()) throw GraphBreak("a sequence of arrays in a call of a ufunc with a dtype");
  Ref array = checked(PyArray_FROM_O(operand));
  return Ref::borrow(reinterpret_cast<PyObject*>(PyArray_DESCR(reinterpret_cast<PyArrayObject*>(array.get()))));
}

bool is_number(PyObject* seen) { return PyType_Check(seen); }

/// What `ufunc.resolve_dtypes` takes beside the dtypes.
Ref resolving_keywords(const PyUFuncObject* ufunc, PyObject* kwargs) {
  Ref keywords = checked(PyDict_New());
  PyObject* signature = keyword(kwargs, "signature");
  if (!signature) signature = keyword(kwargs, "sig");
  if (signature) checked(PyDict_SetItemString(keywords.get(), "signature", signature));
  if (PyObject* casting = keyword(kwargs, "casting")) checked(PyDict_SetItemString(keywords.get(), "casting", casting));
  PyObject* dtype = keyword(kwargs, "dtype");
  if (!dtype) return keywords;
  if (signature) throw GraphBreak("a dtype and a signature");
  PyArray_Descr* descriptor = nullptr;
  if (PyArray_DescrConverter(dtype, &descriptor) != NPY_SUCCEED) throw_python_error();
  Ref owned = Ref::steal(reinterpret_cast<PyObject*>(descriptor));
  Ref of_results = checked(PyTuple_New(ufunc->nargs));
  for (int i = 0; i < ufunc->nargs; ++i) PyTuple_SET_ITEM(of_results.get(), i, Py_NewRef(i < ufunc->nin ? Py_None : owned.get()));
  checked(PyDict_SetItemString(keywords.get(), "signature", of_results.get()));
  return keywords;
}

/// The dtypes of the loop, by NumPy. `output`: that of the array that all results are written to.
std::vector<Ref> resolved(PyObject* ufunc, const std::vector<Ref>& seen, PyObject* keywords, PyObject* output = Py_None) {
  PyObject* casting = PyDict_GetItemString(keywords, "casting");
  // NumPy (2.4.6) dereferences null where it refuses a number.
  if (casting && PyUnicode_Check(casting) && PyUnicode_CompareWithASCIIString(casting, "equiv") == 0 &&
      std::ranges::any_of(seen, [](const Ref& operand) { return is_number(operand.get()); }))
    throw GraphBreak("casting='equiv' of a number");
  const auto count = static_cast<std::size_t>(reinterpret_cast<PyUFuncObject*>(ufunc)->nargs);
  Ref dtypes = checked(PyTuple_New(static_cast<Py_ssize_t>(count)));
  for (std::size_t i = 0; i < count; ++i) PyTuple_SET_ITEM(dtypes.get(), static_cast<Py_ssize_t>(i), Py_NewRef(i < seen.size() ? seen[i].get() : output));
  Ref resolve = checked(PyObject_GetAttrString(ufunc, "resolve_dtypes")), args = checked(PyTuple_Pack(1, dtypes.get()));
  Ref loop = Ref::steal(PyObject_Call(resolve.get(), args.get(), keywords));
  if (!loop) throw GraphBreak(take_first_line());
  std::vector<Ref> all;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(loop.get()); ++i) all.push_back(Ref::borrow(PyTuple_GET_ITEM(loop.get(), i)));
  return all;
}

std::vector<Ref> all_seen(PyObject* args, const StandIns& stand_ins) {
  std::vector<Ref> seen;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) seen.push_back(seen_of(PyTuple_GET_ITEM(args, i), stand_ins));
  return seen;
}

DType carried(PyObject* descriptor) {
  auto* dtype = reinterpret_cast<PyArray_Descr*>(descriptor);
  const auto known = PyArray_DescrCheck(descriptor) && PyDataType_ISNOTSWAPPED(dtype) ? dtype_of_numpy(dtype->type_num) : std::nullopt;
  if (!known) throw GraphBreak("a NumPy dtype that graphs do not carry");
  return *known;
}

}  // namespace

bool chooses_loop(std::string_view keyword) { return std::ranges::find(kChoosing, keyword) != std::end(kChoosing); }

std::optional<std::vector<DType>> chosen_loop(PyObject* ufunc, const StandIns& stand_ins, PyObject* args, PyObject* kwargs) {
  if (std::ranges::none_of(kChoosing, [&](const char* name) { return keyword(kwargs, name); })) return std::nullopt;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i)  // the recorder rounds it to the dtype that its operand has
    if (is_symbolic_scalar(PyTuple_GET_ITEM(args, i))) throw GraphBreak("a number that varies in a call of a ufunc with a dtype");
  std::vector<Ref> seen = all_seen(args, stand_ins);
  const std::vector<Ref> loop = resolved(ufunc, seen, resolving_keywords(reinterpret_cast<PyUFuncObject*>(ufunc), kwargs).get());
  for (std::size_t i = 0; i < seen.size(); ++i)
    if (!is_number(seen[i].get())) seen[i] = loop[i];
  std::vector<DType> dtypes;
  for (const Ref& dtype : loop) dtypes.push_back(carried(dtype.get()));
  const std::vector<Ref> plain = resolved(ufunc, seen, checked(PyDict_New()).get());
  for (std::size_t i = 0; i < loop.size(); ++i)
    if (carried(plain[i].get()) != dtypes[i]) throw GraphBreak("a number as another kind of number than it is");
  return dtypes;
}

void require_output(PyObject* ufunc, const StandIns& stand_ins, PyObject* args, PyObject* kwargs, PyObject* output) {
  resolved(ufunc, all_seen(args, stand_ins), resolving_keywords(reinterpret_cast<PyUFuncObject*>(ufunc), kwargs).get(), seen_of(output, stand_ins).get());
}

}  // namespace tenon::python
