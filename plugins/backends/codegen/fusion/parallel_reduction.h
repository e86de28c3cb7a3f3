// Splits reductions in two steps, so that many threads can work on one, and so that lanes run over what is contiguous.
#pragma once

#include <vector>

#include "fusion/plan.h"

namespace tenon::codegen {

/// Gives the step itself, or two: partial results, then their combination with what follows. A reduction into few results runs in a fixed
/// number of parts, which do not depend on the number of threads, so results do not either. Where only a loop in the middle of what is
/// reduced is contiguous (the channels of a group, channels last), each of its iterations gets a partial result: lanes run over them.
std::vector<KernelStep> split_reduction(KernelStep step, IndexAlgebra& algebra, const Machine& machine, Plan& plan, const ir::Graph& graph);

}  // namespace tenon::codegen
