// The running mean and variance that normalisations keep while they train.
#pragma once

#include "core/ops/notation/family.h"

namespace tenon::ops {

/// What one batch says of its channels: the mean and the mean squared distance from it, [C] or with more dimensions of size 1.
struct BatchStatistics {
  ir::ValueId mean, variance;
  ir::Dim count;  // elements of a channel
};

/// Leaves (1 - momentum) * running + momentum * batch in `running_mean` and `running_var`, as far as they are given. The variance that
/// is kept is that of a sample: divided by count - 1. `counted`: whether torch counts the writes as versions.
void update_running_statistics(ForeignArguments& a, const BatchStatistics& batch, bool counted);

}  // namespace tenon::ops
