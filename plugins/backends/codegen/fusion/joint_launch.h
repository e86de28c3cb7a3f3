// Horizontal fusion: small equal kernels that do not wait for each other run in one launch.
#pragma once

#include "fusion/plan.h"

namespace tenon::codegen {

/// Lets later runs of a small kernel start with its first one, where nothing in between needs otherwise: one call starts them all. Kernels are equal when their canonical texts are.
void join_launches(Plan& plan, const ir::Graph& graph, const IndexAlgebra& algebra, const Machine& machine, const PlanOptions& options);

}  // namespace tenon::codegen
