// Ranges of calls and captures, to whoever profiles: TENON_TRACE, and torch's profiler while one is active.
#pragma once

#include <string>

#include "tenon/host.h"
#include "tenon/profiling.h"

namespace tenon::python {

/// What libtenon knows of profilers.
inline const Profiling& profiling() {
  static const Profiling known(tenon_profiling());
  return known;
}

/// Whether it has been said that torch's profiler takes ranges, or that it does not. Nothing has been said before the first call.
bool has_said_of_torch(bool takes_ranges) noexcept;
/// Has torch's profiler take ranges from now on, each as a `record_function` of its own, or no longer. The first time the session is made, with which a trace
/// begins. Needs the GIL.
void say_of_torch(bool takes_ranges) noexcept;

namespace detail {
/// A thread within a call. Others may be waited for by one that holds the GIL, which torch's ranges need.
struct WithinCall {
  WithinCall() noexcept;
  ~WithinCall();
  WithinCall(const WithinCall&) = delete;
};
}  // namespace detail

/// A call of compiled code, as a range. To be made only where somebody takes ranges.
class CallRange {
 public:
  explicit CallRange(const std::string& name) { range_.begin(profiling(), name); }

 private:
  detail::WithinCall within_;
  Range range_;
};

}  // namespace tenon::python
