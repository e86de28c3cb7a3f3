// What happens at run time after a segment that ends in a graph break: one instruction for real, then on through the cache.
#pragma once

#include "python/call/capture_point.h"

namespace tenon::python {

class FunctionCache;

/// One call of a compiled function from its first graph break to its end.
class Continuation {
 public:
  explicit Continuation(FunctionCache& cache) : x_cache(cache) {}

  /// Goes on where `entry` has ended; `objects` are those that its run has built. Gives what the function returns, or null with the exception set
  /// that leaves it.
  PyObject* run(CacheEntry* entry, std::vector<Ref> objects);

 private:
  Progress step(const BreakState& stop, Ref& result);
  PyObject* plainly();

  FunctionCache& x_cache;
  LiveChain x_chain;
  ChainSlots x_slots;
  std::size_t x_steps = 0;
};

}  // namespace tenon::python
