// Splits reductions in two steps, so that many can work on one, and so that vectors run over what is contiguous.
#pragma once

#include <cstdint>
#include <vector>

#include "fusion/plan.h"

namespace tenon::codegen {

/// Gives the step itself, or two: partial results, then their combination with what follows. A reduction into few results runs in a fixed
/// number of parts, whoever works on them, so that results are the same. Where only a loop in the middle of what is
/// reduced is contiguous (the channels of a group, channels last), each of its iterations gets a partial result: vectors run over them.
std::vector<KernelStep> split_reduction(KernelStep step, IndexAlgebra& algebra, const Machine& machine, Plan& plan, const ir::Graph& graph);

/// Gives the step itself where `pieces` is 1; else partial results over so many pieces of its longest inner loop, and their combination.
std::vector<KernelStep> cut_reduction(KernelStep step, std::int64_t pieces, Plan& plan, const ir::Graph& graph);

}  // namespace tenon::codegen
