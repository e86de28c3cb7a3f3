// Calls of what functools.lru_cache made: the results that it holds, and those that it is to hold afterwards.
#pragma once

#include <unordered_set>

#include "python/heap/heap.h"
#include "python/segments/arguments.h"

namespace tenon::python {

class Evaluator;

/// Asks calls, equality.
class CachedCalls {
 public:
  CachedCalls(Evaluator& core, Heap& heap) : core_(core), heap_(heap) {}

  /// A cache does its own counting and keeping: after the graph it is called as the program called it. Until then it is as it was found.
  Ref call(PyObject* callable, Arguments arguments);

 private:
  struct Call;
  Ref known_result(const Call& call) const;
  Ref call_known(const Call& call, const Ref& known);
  Ref take_from_cache(const Call& call, PyObject* held);
  Ref fill_cache(const Call& call, PyObject* function, Arguments arguments);
  void note_cached(const Call& call, const Ref& value, bool fixed);
  void require_nothing_dropped(PyObject* cache);

  Evaluator& core_;
  Heap& heap_;
  Ref cached_;  // dict: (cache, key) -> (its result, whether that is the same whoever computes it)
  std::unordered_set<PyObject*> filled_caches_;  // of a limited size, that the program has given a result
};

}  // namespace tenon::python
