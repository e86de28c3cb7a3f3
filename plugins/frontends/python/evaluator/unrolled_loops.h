// Loops of the program that a capture would write out step by step, until the graph takes seconds and hundreds of megabytes to compile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "python/objects/graph_break.h"

namespace tenon::python {

/// Ends the capture because a loop goes round too often. The capture stops where the loop first went back to its start, and what follows in the
/// frame is left to plain Python.
class UnrolledLoop : public GraphBreak {
 public:
  explicit UnrolledLoop(std::size_t stop_before);
  std::size_t stop_before() const { return stop_before_; }

 private:
  std::size_t stop_before_;
};

/// Counts the rounds of loops. One object a capture.
class UnrolledLoops {
 public:
  /// Code goes back to an instruction. `now`: the clock of the capture; `recorded`: how many operations there are. Throws UnrolledLoop.
  void goes_back(const void* code, std::int32_t target, std::size_t now, std::size_t recorded);

 private:
  struct Loop {
    std::size_t rounds = 0, first = 0, recorded = 0;
  };
  std::unordered_map<std::uintptr_t, Loop> loops_;  // by code and target
};

}  // namespace tenon::python
