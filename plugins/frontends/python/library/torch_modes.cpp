#include "python/library/torch_modes.h"

#include "python/objects/graph_break.h"
#include "python/objects/imported.h"
#include "python/objects/pending_exception.h"

namespace tenon::python {
namespace {

void set_grad_mode(PyObject* mode) {
  Ref native = Ref::steal(imported("torch._C"));
  Ref done = native ? Ref::steal(PyObject_CallMethod(native.get(), "_set_grad_enabled", "O", mode)) : Ref();
  if (!done) PyErr_WriteUnraisable(nullptr);
}

}  // namespace

void InferenceScope::enter(bool wanted) {
  Ref native = Ref::steal(imported("torch._C"));
  if (native) context_ = Ref::steal(PyObject_CallMethod(native.get(), "_InferenceMode", "O", wanted ? Py_True : Py_False));
  Ref entered = context_ ? Ref::steal(PyObject_CallMethod(context_.get(), "__enter__", nullptr)) : Ref();
  failed_ = !entered;
}

void InferenceScope::leave() {
  Ref left = Ref::steal(PyObject_CallMethod(context_.get(), "__exit__", "OOO", Py_None, Py_None, Py_None));
  if (!left) PyErr_Clear();
}

GradMode::GradMode(bool on, bool now) : on_(on), before_(now) {
  if (on_ != before_) set_grad_mode(on_ ? Py_True : Py_False);
}

GradMode::~GradMode() {
  if (on_ == before_) return;
  PendingException pending;
  set_grad_mode(before_ ? Py_True : Py_False);
}

}  // namespace tenon::python
