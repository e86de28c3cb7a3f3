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

/// Whether torch's profiler takes ranges, as far as has been said.
bool torch_takes_ranges() noexcept;
/// Has torch's profiler take ranges from now on, each as a `record_function` of its own, or no longer. Needs the GIL.
void give_ranges_to_torch(bool taken) noexcept;

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
