// NumPy's handling of floating-point errors in the calling context.
#pragma once

#include <string>

#include "python/heap/ref.h"

namespace tenon::python {

/// Whether compiled code may stand in for NumPy: floating-point errors neither raise nor call or log anything, and nothing is said of
/// underflow (np.errstate). 20 ns.
/// Warnings (NumPy's default) are issued by plain execution, when a compiled call has set a flag.
bool numpy_errors_are_quiet() noexcept;

/// The floating-point flags of the calling thread as a set of NumPy's kinds of error.
struct FloatErrors {
  bool divide = false, over = false, under = false, invalid = false;
};
void clear_float_errors() noexcept;
FloatErrors float_errors() noexcept;

/// Whether NumPy would say something about one of these errors in the calling context.
bool numpy_would_warn(const FloatErrors& errors) noexcept;

/// Puts NumPy's error handling back as it was: an interrupt may have kept np.errstate from doing so.
class KeptErrorHandling {
 public:
  KeptErrorHandling();
  ~KeptErrorHandling();
  KeptErrorHandling(const KeptErrorHandling&) = delete;
  KeptErrorHandling& operator=(const KeptErrorHandling&) = delete;
  /// What it was; null where that is not known.
  PyObject* before() const { return before_.get(); }

 private:
  Ref before_;
};

/// While it lives, errors in NumPy's own functions of which it would warn are kept back; then they are flags of the thread, like those of
/// compiled code, beside the flags that were set before. What Python code of NumPy warns of is an exception. So the warning is issued once,
/// by plain execution, at the user's line.
class NotedErrors {
 public:
  NotedErrors();
  ~NotedErrors();
  NotedErrors(const NotedErrors&) = delete;

 private:
  KeptErrorHandling kept_;
  Ref handling_;  // np.errstate, entered
  Ref filters_;   // the list of filters of warnings, in which one is ours
  int before_;
};

/// Why not, for messages.
inline const char* const kLoudErrors = "np.errstate makes floating-point errors raise, call or log, or warns of underflow";

}  // namespace tenon::python
