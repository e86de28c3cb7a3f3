// The windows of a convolution read where they lie: where elements of the sum lie in runs, a table of places stands for a copy.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "fusion/nest.h"
#include "fusion/operand.h"

namespace tenon::codegen {

/// An operand that lies in runs along one loop of the sum, or along several that step as one; the other loops of the sum are taps.
struct Windows {
  OpId load = kNoOp;
  OpId mask = kNoOp;  // where it does not hold, the whole run is zero
  std::vector<Loop> run;  // the last one is contiguous
  std::vector<Loop> taps;
};
/// Nothing when the runs are too short to multiply one at a time.
std::optional<Windows> windows_of(const Draft& draft, OpId operand, std::span<const Loop> summed, const IndexAlgebra& algebra, const Machine& machine);

/// The picture that windows of 3 x 3 taps slide over by one place, when the last two of `rows` are its own. Else nothing.
std::optional<Picture> picture_of(const OperationList& operations, const Windows& windows, std::span<const Role> rows);

/// Gives the sum's loops in the order of windows: taps, then the run.
std::vector<Loop> summed_loops(const Windows& windows);

}  // namespace tenon::codegen
