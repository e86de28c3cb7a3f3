// What is known of an index that a kernel computes, without running it.
#pragma once

#include "drafts/draft.h"

namespace tenon::codegen {

/// True when the value, an i64, is in [0, size) whatever the kernel reads: places that resampling rounds and clamps need no check.
bool always_inside(const OperationList& operations, const IndexAlgebra& algebra, OpId value, const Dim& size);
/// True when the value is 0 or more, or NaN, whatever the kernel reads.
bool never_negative(const OperationList& operations, const IndexAlgebra& algebra, OpId value);

}  // namespace tenon::codegen
