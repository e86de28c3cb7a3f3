#include "python/compat/meta_device_hint.h"

#include "python/objects/imported.h"
#include "python/objects/pending_exception.h"

namespace tenon::python {
namespace {

PyObject* answer_cpu(PyObject*, PyObject*) { return PyUnicode_FromString("cpu"); }

PyMethodDef kAnswer = {"device_hint", answer_cpu, METH_O, nullptr};

}  // namespace

CpuMetaKernels::CpuMetaKernels() {
  module_ = Ref::steal(imported("torch._meta_registrations"));
  if (module_) original_ = Ref::steal(PyObject_GetAttrString(module_.get(), "device_hint"));
  Ref answer = original_ ? Ref::steal(PyCFunction_New(&kAnswer, nullptr)) : Ref();
  if (!answer || PyObject_SetAttrString(module_.get(), "device_hint", answer.get()) < 0) original_ = {};
  PyErr_Clear();
}

CpuMetaKernels::~CpuMetaKernels() {
  if (!original_) return;
  PendingException pending;
  if (PyObject_SetAttrString(module_.get(), "device_hint", original_.get()) < 0) PyErr_WriteUnraisable(module_.get());
}

}  // namespace tenon::python
