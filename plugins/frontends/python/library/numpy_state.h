// NumPy's handling of floating-point errors in the calling context.
#pragma once

#include <string>

#include "python/objects/ref.h"

namespace tenon::python {

/// Whether compiled code may stand in for NumPy: floating-point errors neither raise nor call or log anything, and nothing is said of
/// underflow (np.errstate). 20 ns.
/// Warnings (NumPy's default) are issued by plain execution, when a compiled call has set a flag.
bool numpy_errors_are_quiet() noexcept;

/// The floating-point flags of the calling thread as a set of NumPy's kinds of error.
struct FloatErrors {
  bool divide = false, over = false, under = false, invalid = false;

  bool any() const { return divide || over || under || invalid; }
  bool operator==(const FloatErrors&) const = default;
  FloatErrors operator|(const FloatErrors& o) const { return {divide || o.divide, over || o.over, under || o.under, invalid || o.invalid}; }
  /// Those that are not among the others.
  FloatErrors operator-(const FloatErrors& o) const { return {divide && !o.divide, over && !o.over, under && !o.under, invalid && !o.invalid}; }
};
/// Clears the flags, and what was noted.
void clear_float_errors() noexcept;
FloatErrors float_errors() noexcept;
/// What was noted (NotedErrors) in the calling thread.
FloatErrors noted_errors() noexcept;

/// Whether NumPy would say something about one of these errors in the calling context, or where what is `heard` is spoken of.
bool numpy_would_warn(const FloatErrors& errors, const FloatErrors& heard) noexcept;

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

struct ErrorHandling;

/// While it lives, errors in NumPy's own functions of which it would warn are noted instead, and the thread's flags are kept. What Python code
/// of NumPy warns of is an exception. So the warning is issued once, by plain execution, at the user's line.
class NotedErrors {
 public:
  explicit NotedErrors(const ErrorHandling& inside);
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
