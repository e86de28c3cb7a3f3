// torch's modes of a thread, switched for a while.
#pragma once

#include "python/objects/ref.h"

namespace tenon::python {

/// Switches inference mode on or off for this thread while it lives, where it is to be another than the thread is in.
class InferenceScope {
 public:
  /// Raises nothing; `failed()` with an exception set.
  InferenceScope(bool wanted, bool present) {
    if (wanted != present) [[unlikely]] enter(wanted);
  }
  ~InferenceScope() {
    if (context_ && !failed_) [[unlikely]] leave();
  }
  InferenceScope(const InferenceScope&) = delete;
  InferenceScope& operator=(const InferenceScope&) = delete;
  bool failed() const { return failed_; }

 private:
  void enter(bool wanted);
  void leave();

  Ref context_;
  bool failed_ = false;
};

/// Sets grad mode, and sets it back at its end. `now`: as it is.
class GradMode {
 public:
  GradMode(bool on, bool now);
  ~GradMode();
  GradMode(const GradMode&) = delete;
  GradMode& operator=(const GradMode&) = delete;

 private:
  const bool on_, before_;
};

}  // namespace tenon::python
