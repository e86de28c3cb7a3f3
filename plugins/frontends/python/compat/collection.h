// When CPython's garbage collector may run.
#pragma once

#include <Python.h>

namespace tenon::python::compat {

/// Whether any allocation of an object may collect, as in CPython 3.11; later versions collect between instructions alone.
inline constexpr bool kCollectsAtAllocations = PY_VERSION_HEX < 0x030C0000;

/// Keeps the collector, and so the program's finalizers, away while it lives (where `wanted`). Explicit collections run all the same, and what turned the
/// collector off before has its way. The GIL must be held at both ends.
class WithoutCollection {
 public:
  explicit WithoutCollection(bool wanted = true) : paused_(wanted && PyGC_Disable() != 0) {}
  WithoutCollection(const WithoutCollection&) = delete;
  WithoutCollection& operator=(const WithoutCollection&) = delete;
  ~WithoutCollection() {
    if (paused_) PyGC_Enable();
  }

 private:
  bool paused_;
};

}  // namespace tenon::python::compat
