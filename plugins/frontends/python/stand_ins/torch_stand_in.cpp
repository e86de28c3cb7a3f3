#include "python/stand_ins/torch_stand_in.h"

#include "python/library/torch_device.h"
#include "python/objects/graph_break.h"
#include "python/objects/object_type.h"
#include "python/stand_ins/stand_in_uses.h"
#include "python/results/torch_results.h"

namespace tenon::python {
namespace {

/// `__torch_function__(cls, func, types, args=(), kwargs=None)`
PyObject* torch_function(PyObject*, PyObject* const* values, Py_ssize_t count) {
  if (count < 3) {
    PyErr_SetString(PyExc_TypeError, "__torch_function__ takes func, types, args and kwargs");
    return nullptr;
  }
  return guarded([&] {
    Ref args = count > 3 ? Ref::borrow(values[3]) : checked(PyTuple_New(0));
    PyObject* kwargs = count > 4 && values[4] != Py_None ? values[4] : nullptr;
    return StandInUses::active().call(values[1], args.get(), kwargs);
  });
}

/// `__torch_dispatch__`: reached only by C++ code of torch that computes on a stand-in without asking `__torch_function__`.
PyObject* torch_dispatch(PyObject*, PyObject* const* values, Py_ssize_t count) {
  Ref name = count > 1 ? Ref::steal(PyObject_Str(values[1])) : Ref();
  PyErr_Clear();
  set_break_signal(std::string("torch computed ") + (name ? PyUnicode_AsUTF8(name.get()) : "an operation") + " out of sight of the capture");
  return nullptr;
}

PyMethodDef kTorchFunction = {"__torch_function__", reinterpret_cast<PyCFunction>(torch_function), METH_FASTCALL, nullptr};
PyMethodDef kTorchDispatch = {"__torch_dispatch__", reinterpret_cast<PyCFunction>(torch_dispatch), METH_FASTCALL, nullptr};

PyObject* g_class = nullptr;  // as TorchLibrary::stand_in

Ref class_method(PyMethodDef& method) {
  Ref function = checked(PyCFunction_New(&method, nullptr));
  return checked(PyClassMethod_New(function.get()));
}

}  // namespace

void make_torch_stand_in_class(TorchLibrary& torch) {
  Ref members = checked(PyDict_New());
  checked(PyDict_SetItemString(members.get(), "__torch_function__", class_method(kTorchFunction).get()));
  checked(PyDict_SetItemString(members.get(), "__torch_dispatch__", class_method(kTorchDispatch).get()));
  checked(PyDict_SetItemString(members.get(), "__slots__", checked(PyTuple_New(0)).get()));
  checked(PyDict_SetItemString(members.get(), "__module__", checked(PyUnicode_FromString("tenon._tenon")).get()));
  PyObject* metaclass = reinterpret_cast<PyObject*>(torch.tensor.type());
  torch.stand_in = checked(PyObject_CallFunction(metaclass, "s(O)O", "TensorStandIn", torch.tensor.get(), members.get()));
  g_class = torch.stand_in.get();
}

Ref make_torch_stand_in(const TorchLibrary& torch, ir::Device device, DType dtype, std::span<const std::int64_t> shape,
                        std::span<const std::int64_t> strides, bool requires_grad) {
  static PyObject* const names = Py_BuildValue("(sssss)", "strides", "dtype", "layout", "device", "requires_grad");
  Ref sizes = integer_tuple(shape), steps = integer_tuple(strides);
  PyObject* values[] = {torch.stand_in.get(), sizes.get(), steps.get(), torch.dtypes[static_cast<std::size_t>(dtype)].get(),
                        torch.strided.get(), torch_device_object(torch, device), requires_grad ? Py_True : Py_False};
  return checked(PyObject_Vectorcall(torch.wrapper_subclass.get(), values, 2, names));
}

bool is_torch_stand_in(PyObject* object) { return g_class && reinterpret_cast<PyObject*>(Py_TYPE(object)) == g_class; }

}  // namespace tenon::python
