// Constant folding: computes, at compile time, what does not depend on inputs.
#pragma once

#include "tenon/pass.h"

namespace tenon::simplify {

/// Replaces nodes whose tensor operands are all constants by constants, with the reference kernels, where operands and results are small
/// (64 KiB). Leaves regions alone: constants belong to the outermost graph. Random, opaque and failing nodes stay.
void fold(ir::Graph& graph, const PassContext& context);

}  // namespace tenon::simplify
