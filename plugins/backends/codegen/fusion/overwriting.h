// Which values a step may write over what it reads: then they need no memory of their own.
#pragma once

#include <optional>
#include <vector>

#include "fusion/plan.h"

namespace tenon::codegen {

/// A value that a step writes, and one that it reads at the same place of the memory, before and nowhere else.
struct Overwriting {
  ValueId written, read;
};

/// Gives those of the step; the caller sees to it that nobody reads `read` later, and that both have as many bytes.
std::vector<Overwriting> overwritings(const Step& step);

/// True for a step that the values that it reads may stop: it checks an index, or runs code that is not ours. Any step may stop for want of memory.
bool may_stop(const Step& step);

/// The value that the step writes and the one that it reads, if it does nothing but copy elements to the same places.
std::optional<Overwriting> copied_value(const KernelStep& step);

}  // namespace tenon::codegen
