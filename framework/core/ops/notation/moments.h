// The mean and the variance that normalisations divide by, and what they make of them.
#pragma once

#include <optional>
#include <vector>

#include "core/ops/notation/family.h"

namespace tenon::ops {

/// The mean, and the mean squared distance from it, of each part of a tensor.
struct MeanAndVariance {
  ir::ValueId mean, variance;
};

/// Throws (unsupported) where groups of the channels of [N, C, …] have nothing to take statistics of, or, which torch refuses, one value each.
/// Asks where the sizes leave it open.
void require_several_values(const ir::Graph& graph, ir::Shape shape, const ir::Dim& groups);

/// Of float32 or float64, over dimensions that keep size 1, in float64. Of float32 in one sweep: E[x²] - E[x]², whose cancellation stays
/// below the rounding of float32 as long as the mean is not a million times the deviation.
MeanAndVariance moments_over(NodeBuilder& b, ir::ValueId x, const std::vector<ir::Dim>& dims);

/// The same for each group of neighbouring channels of [N, C, …]: [N, groups, 1].
MeanAndVariance moments_of_groups(NodeBuilder& b, ir::ValueId x, const ir::Dim& groups);

/// (x - mean) / sqrt(variance + eps) * weight + bias for [N, C, …] and the moments of its groups, as (x - centre) * scale + shift: the mean rounded
/// to the dtype of x, and a scale and a shift for each channel, computed in float64, with what the rounding left. Equal elements give the bias.
ir::ValueId normalise_groups(NodeBuilder& b, ir::ValueId x, const MeanAndVariance& moments, double eps, std::optional<ir::ValueId> weight,
                             std::optional<ir::ValueId> bias);

}  // namespace tenon::ops
