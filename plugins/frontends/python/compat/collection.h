// When CPython's garbage collector may run.
#pragma once

#include <Python.h>

namespace tenon::python::compat {

/// Keeps the collector, and so the program's finalizers, out of a piece of C code that makes objects. Only CPython 3.11 collects at any allocation of one;
/// later versions do it between instructions. The GIL must be held all the time.
class WithoutCollection {
 public:
  explicit WithoutCollection([[maybe_unused]] bool makes_objects) {
#if PY_VERSION_HEX < 0x030C0000
    paused_ = makes_objects && PyGC_Disable() != 0;
#endif
  }
  WithoutCollection(const WithoutCollection&) = delete;
  WithoutCollection& operator=(const WithoutCollection&) = delete;
  ~WithoutCollection() {
    if (paused_) PyGC_Enable();
  }

 private:
  bool paused_ = false;
};

}  // namespace tenon::python::compat
