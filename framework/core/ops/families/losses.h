// What loss functions share.
#pragma once

#include "core/ops/notation/formula.h"

namespace tenon::ops {

/// A loss of elements as at::Reduction says: 0 none, 1 mean, 2 sum.
Values reduced_loss(ForeignArguments& a, ir::ValueId loss, std::int64_t reduction);

}  // namespace tenon::ops
