// The lock of the interpreter, given away and taken by scopes. A thread that wants it when the interpreter has ended never goes on
// (module/ended_threads.cpp).
#pragma once

#include <Python.h>
#include <unistd.h>

namespace tenon::python {

/// Gives the lock away while it lives.
class GilReleased {
 public:
  GilReleased() : counts_(Py_IsInitialized() ? 1 : 0), state_(PyEval_SaveThread()) { depth() += counts_; }
  GilReleased(const GilReleased&) = delete;
  GilReleased& operator=(const GilReleased&) = delete;
  ~GilReleased() {
    PyEval_RestoreThread(state_);
    depth() -= counts_;
  }

  /// Scopes of this thread that have given the lock away, apart from those of the thread that ends the interpreter.
  static int& depth() {
    static thread_local int scopes = 0;
    return scopes;
  }

 private:
  const int counts_;
  PyThreadState* const state_;
};

/// Has the lock while it lives, on a thread that may have it already or not.
class GilHeld {
 public:
  GilHeld() {
    while (GilReleased::depth() > 0 && !Py_IsInitialized()) pause();  // PyGILState_Ensure no longer knows the thread
    state_ = PyGILState_Ensure();
  }
  GilHeld(const GilHeld&) = delete;
  GilHeld& operator=(const GilHeld&) = delete;
  ~GilHeld() { PyGILState_Release(state_); }

 private:
  PyGILState_STATE state_;
};

}  // namespace tenon::python
