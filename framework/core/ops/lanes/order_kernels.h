// The kernels of the ops about order along a dimension: what they compute, for floats and for integers and bools.
#pragma once

#include <functional>

#include "core/ops/op.h"

namespace tenon::ops {

using OrderKernel = std::function<void(KernelCall&)>;

/// Stable, ascending or `descending`: elements and their places.
OrderKernel sort_kernel();
/// As aten/src/ATen/native/TopKImpl.h chooses among equal elements.
OrderKernel topk_kernel();
/// As the quick select of aten/src/ATen/native/Sorting.cpp chooses among equal elements.
OrderKernel kth_kernel();
/// The lower of two middles; the first nan, or nan left out.
OrderKernel median_kernel();
/// The largest or smallest element so far, and its place; of equal ones the last.
OrderKernel running_kernel();
/// The places of the rows of a matrix, in order: as std::sort orders what torch.unique compares, element by element.
OrderKernel rows_kernel();
/// The place of each value in the last dimension of a sorted sequence (operand 0): one for all, or one a row.
OrderKernel search_kernel();

}  // namespace tenon::ops
