// torch's modes of a thread, switched for a while.
#pragma once

#include "python/objects/ref.h"

namespace tenon::python {

/// Switches inference mode on or off for this thread while it lives, where it is to be another than the thread is in.
class InferenceScope {
 public:
  /// Raises nothing; `failed()` with an exception set.
  InferenceScope(bool wanted, bool present);
  ~InferenceScope();
  InferenceScope(const InferenceScope&) = delete;
  InferenceScope& operator=(const InferenceScope&) = delete;
  bool failed() const { return failed_; }

 private:
  Ref context_;
  bool failed_ = false;
};

/// Switches grad mode off for as long as it lives, where that is needed.
class WithoutGrad {
 public:
  explicit WithoutGrad(bool needed);
  ~WithoutGrad();
  WithoutGrad(const WithoutGrad&) = delete;
  WithoutGrad& operator=(const WithoutGrad&) = delete;

 private:
  bool needed_;
};

}  // namespace tenon::python
