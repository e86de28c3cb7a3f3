// The points of a nest that lie inside of all bounds: the middle of a stencil, of what is padded, rolled, put together or written in part.
#pragma once

#include <optional>
#include <vector>

#include "loops/kernel.h"

namespace tenon::codegen {

/// What a kernel computes where its outer loops are in these ranges: comparisons, masks and clamped places that have one answer there are gone.
struct Interior {
  struct Range {
    SymbolId loop;
    Dim low, high;
  };
  std::vector<Range> ranges;  // of outer loops
  std::vector<Stage> stages;  // instead of the kernel's; over the same operations
};

/// Finds the ranges, if they are most of the kernel's points and some element is read there without a test that it is read under elsewhere, along
/// the last outer loop. Adds the operations and reductions of the inside to the kernel; those that do not change serve both.
std::optional<Interior> add_interior(Kernel& kernel);

}  // namespace tenon::codegen
