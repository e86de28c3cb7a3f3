// Leaves out of a kernel what no store and no reduction of it needs.
#pragma once

#include "fusion/plan.h"

namespace tenon::codegen {

/// The step of one run without the operations and the buffers that nothing needs; both are numbered anew, by first use.
KernelStep pruned(KernelStep step);

}  // namespace tenon::codegen
