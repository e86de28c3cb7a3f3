// Small inputs that a step could be written over if no later one read them: the scale of a norm, which its gradient updates while that of the norm's input
// still needs it.
#pragma once

#include "fusion/plan.h"

namespace tenon::cuda {

/// Has steps that reduce, and give what may be written over such an input, keep what they have read of it for the later ones.
void keep_inputs(codegen::Plan& plan, const ir::Graph& graph);

}  // namespace tenon::cuda
