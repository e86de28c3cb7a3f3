// Values that only products read which round them to tf32: who writes one rounds it, once for all who read it.
#pragma once

#include "fusion/plan.h"

namespace tenon::cuda {

/// Rounds in the kernels that write such values, and says so to those that read them. All products of the plan are kernels.
void round_where_written(codegen::Plan& plan, const ir::Graph& graph);

}  // namespace tenon::cuda
