#include "python/tensors/eager_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unordered_set>

#include "python/evaluator/graph_break.h"
#include "python/tensors/torch_library.h"

namespace tenon::python {
namespace {

constexpr std::int64_t kMostElements = 1 << 20;

/// Puts zeros in the places of meta tensors.
class ZerosOfTwins {
 public:
  Ref of(PyObject* object) {
    if (torch_.is_tensor(object)) return zeros(object);
    if (PyTuple_Check(object) || PyList_CheckExact(object)) return rebuilt(object, [&](PyObject* item) { return of(item); });
    if (!PyDict_CheckExact(object)) return Ref::borrow(object);
    Ref copy = checked(PyDict_New());
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0;
    while (PyDict_Next(object, &position, &key, &value)) checked(PyDict_SetItem(copy.get(), key, of(value).get()));
    return copy;
  }

  std::int64_t elements() const { return elements_; }
  const std::string& dtypes() const { return dtypes_; }

 private:
  Ref zeros(PyObject* twin) {
    Ref count = checked(PyObject_CallMethod(twin, "numel", nullptr)), dtype = checked(PyObject_GetAttrString(twin, "dtype"));
    elements_ += PyLong_AsLongLong(count.get());
    dtypes_ += PyUnicode_AsUTF8(checked(PyObject_Str(dtype.get())).get());
    if (elements_ > kMostElements) return Ref::borrow(twin);
    Ref args = checked(PyTuple_Pack(1, checked(PyObject_GetAttrString(twin, "shape")).get()));
    Ref kwargs = checked(Py_BuildValue("{sO}", "dtype", dtype.get()));
    return checked(PyObject_Call(checked(PyObject_GetAttrString(torch_.module.get(), "zeros")).get(), args.get(), kwargs.get()));
  }

  const TorchLibrary& torch_ = *torch_library();
  std::int64_t elements_ = 0;
  std::string dtypes_;
};

/// Calls without showing warnings: eager execution gives them, where it comes to that.
PyObject* call_silently(PyObject* callable, PyObject* args, PyObject* kwargs) {
  Ref warnings = checked(PyImport_ImportModule("warnings"));
  Ref scope = checked(PyObject_CallMethod(warnings.get(), "catch_warnings", nullptr));
  checked(PyObject_CallMethod(scope.get(), "__enter__", nullptr));
  Ref silent = Ref::steal(PyObject_CallMethod(warnings.get(), "simplefilter", "s", "ignore"));
  PyObject* answer = silent ? PyObject_Call(callable, args, kwargs) : nullptr;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  Ref left = Ref::steal(PyObject_CallMethod(scope.get(), "__exit__", "OOO", Py_None, Py_None, Py_None));
  PyErr_Restore(type, value, traceback);
  return answer;
}

/// What the pending exception says; integers divided by the zeros say nothing of the call.
std::string taken_refusal() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  Ref owned_type = Ref::steal(type), owned_value = Ref::steal(value), owned_traceback = Ref::steal(traceback);
  Ref text = owned_value ? Ref::steal(PyObject_Str(owned_value.get())) : Ref();
  const char* words = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  PyErr_Clear();
  const std::string said(words ? words : "an exception");
  return said.find("ZeroDivisionError") == said.npos ? said.substr(0, said.find('\n')) : std::string();
}

}  // namespace

bool dtypes_are_unusual(const StandIns& stand_ins, std::span<const StandIns::Index> operands) {
  bool floats = false, small = false;
  for (StandIns::Index index : operands) {
    const DType t = stand_ins[index].dtype;
    floats |= t == DType::f32 || t == DType::f64 || is_complex(t);
    small |= t == DType::f16 || t == DType::bf16;
  }
  return small || (!floats && !operands.empty());
}

void require_eager_kernel(PyObject* callable, const ForeignFunction& function, PyObject* twin_args, PyObject* twin_kwargs) {
  static auto* known = new std::unordered_set<std::string>;  // guarded by the GIL
  ZerosOfTwins zeros;
  Ref args = zeros.of(twin_args), kwargs = twin_kwargs ? zeros.of(twin_kwargs) : Ref();
  std::string key = function.name + zeros.dtypes();
  if (zeros.elements() == 0 || zeros.elements() > kMostElements || known->contains(key)) return;
  Ref answer = Ref::steal(call_silently(callable, args.get(), kwargs.get()));
  if (answer) {
    known->insert(std::move(key));
    return;
  }
  if (const std::string refusal = taken_refusal(); !refusal.empty()) throw GraphBreak(fmt::format("{} raises: {}", function.name, refusal));
}

}  // namespace tenon::python
