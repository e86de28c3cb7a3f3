// Transposed convolutions as plain ones.
#pragma once

#include <cstdint>
#include <vector>

#include "core/ops/notation/family.h"

namespace tenon::ops {

/// By spatial dimension, as torch.nn.functional.conv_transpose2d takes them.
struct TransposedWindows {
  std::vector<std::int64_t> stride, padding, dilation, output_padding;
  std::int64_t groups = 1;
};

/// Of x [N, C, in...] and weight [C, O/g, k...]: [N, O, out...], without bias, where
/// y[o] = the sum over i, t with i * stride + t * dilation - padding = o of x[i] * weight[t].
ir::ValueId transposed_convolution(NodeBuilder& b, ir::ValueId x, ir::ValueId weight, const TransposedWindows& windows);

}  // namespace tenon::ops
