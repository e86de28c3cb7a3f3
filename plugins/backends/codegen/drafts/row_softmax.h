// The softmax of rows, told by what a kernel computes.
#pragma once

#include <optional>

#include "loops/kernel.h"

namespace tenon::codegen {

/// The parts of a kernel that makes the softmax of each of its rows.
struct RowSoftmax {
  OpId score = kNoOp;
  std::uint32_t largest = 0, sum = 0;  // reductions
  bool zeroes_hidden = false;          // rows whose scores are all −inf become zero and not NaN
};

/// Finds them: exp(score - largest) / sum, stored at every point, in the dtype of the scores.
std::optional<RowSoftmax> softmax_of(const Kernel& kernel);

}  // namespace tenon::codegen
