// Loops of the program that a capture would write out step by step, until the graph takes seconds and hundreds of megabytes to compile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "python/objects/graph_break.h"

namespace tenon::python {

/// Ends the capture because a loop goes round too often, or an array is taken apart into too many items. The capture stops where the loop first
/// went back to its start, or before the array is taken apart, and what follows in the frame is left to plain Python.
class UnrolledLoop : public GraphBreak {
 public:
  UnrolledLoop(std::string reason, std::size_t stop_before);
  std::size_t stop_before() const { return stop_before_; }

 private:
  std::size_t stop_before_;
};

/// Counts the rounds of loops. One object a capture.
class UnrolledLoops {
 public:
  // Networks that go through a sequence step by step have fewer, each with more to do.
  static constexpr std::size_t kMostRounds = 2000;
  // So many single elements are not kept for what follows a graph break: each would be a result of the graph before it.
  static constexpr std::size_t kMostElementsPastBreak = 256;

  /// Code goes back to an instruction. `now`: the clock of the capture; `recorded`: how many operations there are. Throws UnrolledLoop.
  void goes_back(const void* code, std::int32_t target, std::size_t now, std::size_t recorded);
  /// An array is about to be taken apart into more than kMostRounds items. Throws UnrolledLoop.
  [[noreturn]] static void takes_apart(std::size_t now);
  /// `iterator` goes over an array that was taken apart at `now` into more than kMostElementsPastBreak elements.
  void goes_over_elements(PyObject* iterator, std::size_t count, std::size_t now) { elements_.push_back({Ref::borrow(iterator), count, now}); }
  /// When the first of those arrays was taken apart that have so many elements left; none where there is none.
  std::optional<std::size_t> unfinished() const;

 private:
  struct Loop {
    std::size_t rounds = 0, first = 0, recorded = 0;
  };
  struct Elements {
    Ref iterator;
    std::size_t count = 0, since = 0;
  };
  std::unordered_map<std::uintptr_t, Loop> loops_;  // by code and target
  std::vector<Elements> elements_;
};

}  // namespace tenon::python
