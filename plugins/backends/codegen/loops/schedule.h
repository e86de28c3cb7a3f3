// How a machine runs the loops of a kernel.
#pragma once

#include <cstddef>
#include <string>

namespace tenon::codegen {

struct Kernel;

/// Made by a machine for a kernel's loops as they are then. Nobody else looks into it.
class Schedule {
 public:
  virtual ~Schedule() = default;

  /// The first line of the kernel's text: all of the schedule that its code depends on.
  virtual std::string title(const Kernel& kernel) const = 0;
  /// How many of the outer loops, the first ones, run point by point, so that a run may begin and end at any point of them.
  virtual std::size_t loops_apart(const Kernel& kernel) const = 0;
};

}  // namespace tenon::codegen
