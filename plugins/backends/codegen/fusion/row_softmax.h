// Softmax between two products, taken a block of columns at a time: exponentials are summed up while the largest score is still being
// looked for, and divided by their sum after the second product (Milakov and Gimelshein 2018, arXiv:1805.02867).
#pragma once

#include <optional>

#include "core/ir/graph.h"
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

/// Makes the kernel one that takes the columns of a tile, TileSymbol::column on, or all of them where they are known to be one block. The
/// panel, buffer `panel`, has rows kPanelStride apart. The kernel leaves exponentials there, which are not yet divided by their sum, and
/// RowState for each row.
void take_by_blocks(Kernel& kernel, const RowSoftmax& softmax, std::uint32_t panel, const ir::Graph& graph, IndexAlgebra& algebra);

}  // namespace tenon::codegen
