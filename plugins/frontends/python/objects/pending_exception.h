// What must run while an exception may be set, and leave it set: destructors, above all.
#pragma once

#include "python/objects/ref.h"

namespace tenon::python {

/// Takes the exception that is set, if any, and sets it again at the end of the scope. The GIL must be held.
class PendingException {
 public:
  PendingException() { PyErr_Fetch(&type_, &value_, &traceback_); }
  PendingException(const PendingException&) = delete;
  PendingException& operator=(const PendingException&) = delete;
  ~PendingException() { PyErr_Restore(type_, value_, traceback_); }

 private:
  PyObject *type_ = nullptr, *value_ = nullptr, *traceback_ = nullptr;
};

}  // namespace tenon::python
