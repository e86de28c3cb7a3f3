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

/// Partial results in so many parts, over loops that the caller has yet to cut: `part` is the number of one, the last of the outer loops. Then their
/// combination with what follows.
struct PartialSums {
  KernelStep parts, whole;
  Loop part;
};
PartialSums in_parts(KernelStep step, std::int64_t parts, IndexAlgebra& algebra, Plan& plan, const ir::Graph& graph);

/// True for a kernel of reductions that do not need each other's results, and of what is stored once a row.
bool only_independent_reductions(const Kernel& kernel);

/// Gives the step itself where `pieces` is 1; else partial results over so many pieces of its longest inner loop, and their combination.
std::vector<KernelStep> cut_reduction(KernelStep step, std::int64_t pieces, Plan& plan, const ir::Graph& graph);

}  // namespace tenon::codegen
