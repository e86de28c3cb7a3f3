// The windows of a convolution read where they lie: where elements of the sum lie in runs, a table of places stands for a copy.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "drafts/product.h"
#include "machine/machine.h"

namespace tenon::codegen {

/// The load behind an operand, and the mask where there is one: it is zero where that does not hold. Memory may hold half precision of what is summed.
std::optional<Windows> masked_load(std::span<const Operation> operations, OpId operand);

/// The windows in which an operand lies. Nothing when the runs are too short to multiply one at a time.
std::optional<Windows> windows_of(std::span<const Operation> operations, OpId operand, std::span<const Loop> summed, const IndexAlgebra& algebra, const Machine& machine);

/// The picture that windows of 3 x 3 taps slide over by one place, when the last two of `places` are its own. Else nothing.
std::optional<Picture> picture_of(std::span<const Operation> operations, const Windows& windows, std::span<const Loop> places);

/// Gives the sum's loops in the order of windows: taps, then the run.
std::vector<Loop> summed_loops(const Windows& windows);

}  // namespace tenon::codegen
