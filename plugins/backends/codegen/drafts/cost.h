// What a node costs.
#pragma once

#include "core/ops/loop_body.h"

namespace tenon::codegen {

/// What it costs at one point of its loops, without its operands: an ordinary operation counts 1.
double own_cost(const ops::LoopBody& body);

}  // namespace tenon::codegen
