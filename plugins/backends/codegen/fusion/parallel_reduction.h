// Splits a reduction into few results so that many threads can work on it.
#pragma once

#include <vector>

#include "fusion/plan.h"

namespace tenon::codegen {

/// Gives the step itself, or two: partial results of a fixed number of parts, then their combination with what follows.
/// The parts do not depend on the number of threads, so results do not either.
std::vector<KernelStep> split_for_threads(KernelStep step, IndexAlgebra& algebra, Plan& plan, const ir::Graph& graph);

}  // namespace tenon::codegen
