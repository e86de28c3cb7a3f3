// Whether two graphs compute the same bits, on values chosen to tell.
#pragma once

#include <optional>
#include <string>

#include "core/ir/graph.h"

namespace tenon::golden {

/// Evaluates both with the reference on a few sets of inputs that hold NaN, infinities, both zeros and the extremes of integers. Gives
/// the first difference in bits (any two NaNs are equal), with the seed; nothing when there is none. Both failing counts as equal.
std::optional<std::string> first_difference(const ir::Graph& before, const ir::Graph& after);

}  // namespace tenon::golden
