// What happens at run time after a segment that ends in a graph break: one instruction for real, then on through the cache.
#pragma once

#include "python/call/capture_point.h"

namespace tenon::python {

class FunctionCache;

/// One call of a compiled function from its first graph break to its end.
class Continuation {
 public:
  explicit Continuation(FunctionCache& cache);

  /// Goes on where `entry` has ended; `objects` are those that its run has built. Gives what the function returns, or null with the exception set
  /// that leaves it.
  PyObject* run(EntryRef entry, std::vector<Ref> objects);

  /// Whether no graph of the call has worked on arrays, and the program has taken elements out of some one by one.
  bool goes_through_elements() const { return !on_arrays_ && (takes_apart_ || steps_ >= kFewestSteps); }
  /// Whether the call breaks often, and its graphs do less than that costs.
  bool does_little() const { return steps_ >= kFewSteps && total_gain_ < 0; }
  /// Whether a part of the call has run as plain Python that is not better off so.
  bool ended_plainly() const { return plainly_; }

 private:
  static constexpr std::size_t kFewestSteps = 8, kFewSteps = 4;
  void note(const CacheEntry& entry) {
    on_arrays_ |= entry.plain().on_arrays;
    takes_apart_ |= entry.plain().takes_apart;
  }
  Progress go_past(const BreakState& stop, const CapturePoint* begun, Ref& result);
  Progress step(const BreakState& stop, Ref& result);
  Progress step(PyObject* keyword_names, Ref& result);
  Progress plainly(Ref& result);
  Progress as_plain_function(Ref& result);
  Progress out_of_mode(Ref& result);
  bool pays(CapturePoint& point);
  EntryRef entry_at(CapturePoint& point);

  FunctionCache& cache_;
  const std::uint64_t call_;  // unlike that of any other call
  LiveChain chain_;
  ChainSlots slots_;
  DrawnNumbers drawn_;
  std::size_t steps_ = 0;
  double gain_ = 0;  // of the steps so far over plain execution, in nanoseconds
  double total_gain_ = 0;  // the same of the whole call
  bool on_arrays_ = false, takes_apart_ = false, plainly_ = false;
  std::size_t trial_ = 0;  // how many steps have shown it
};

}  // namespace tenon::python
