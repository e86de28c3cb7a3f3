// Softmax between two products, taken a block of columns at a time: exponentials are summed up while the largest score is still being
// looked for, and divided by their sum after the second product (Milakov and Gimelshein 2018, arXiv:1805.02867).
#pragma once

#include "drafts/row_softmax.h"
#include "tiles/tile.h"

namespace tenon::llvm_backend {

/// Makes the kernel one that takes the columns of a tile, TileSymbol::column on, or all of them where they are known to be one block. The
/// panel, buffer `panel`, has rows kPanelStride apart. The kernel leaves exponentials there, which are not yet divided by their sum, and
/// RowState for each row.
void take_by_blocks(codegen::Kernel& kernel, const codegen::RowSoftmax& softmax, std::uint32_t panel, const TileSymbols& symbols, codegen::IndexAlgebra& algebra);

}  // namespace tenon::llvm_backend
