// Where a tile of a matrix product lies: symbols after the graph's own, which the kernels around a product take like sizes.
#pragma once

#include <cstdint>

#include "core/ir/dim.h"
#include "drafts/contraction.h"
#include "fusion/plan.h"
#include "matrix/microkernel.h"

namespace tenon::llvm_backend {

/// `row`, `column`: the first of the tile, of `rows` and `columns`. `step`, `steps`: the part of the first summed loop. `batch`: the
/// first of kMostBatchLoops loops that a product is repeated over.
enum class TileSymbol : std::uint32_t { row, rows, column, columns, step, steps, batch };

using codegen::kMostBatchLoops;
inline constexpr std::size_t kTileSymbols = static_cast<std::size_t>(TileSymbol::batch) + kMostBatchLoops;

/// Places of a sum over runs of columns that are added up together; so many entries of a table of places lie beside each other.
inline constexpr std::int64_t kPlacesOfTable = 128;
/// Of those that are written together: a block of a kernel.
inline constexpr std::int64_t kPlacedTogether = 64;

/// Columns of the panel between two products that are taken at a time when softmax is taken apart; its rows are a little further apart,
/// so that they do not crowd in few sets of the caches.
inline constexpr std::int64_t kBlockColumns = 512, kPanelStride = kBlockColumns + 16;

/// What is known of a row of such a panel: its largest score and the sum of exponentials before a block of columns; the same after it;
/// and by how much the block makes smaller what was summed before.
enum class RowState : std::uint32_t { largest, sum, new_largest, new_sum, factor, count };

/// Where the state of the panel's rows lies: behind the panel, kFinishedRows numbers of each kind.
inline constexpr std::int64_t place_of(RowState state) { return kFinishedRows * (kPanelStride + static_cast<std::int64_t>(state)); }

/// The symbols of tiles in the kernels of a graph with so many symbols of its own.
struct TileSymbols {
  std::size_t first;

  /// Gives one; `loop` numbers the batch loops.
  ir::Dim operator()(TileSymbol which, std::size_t loop = 0) const {
    return ir::Dim::symbol(SymbolId(static_cast<std::uint32_t>(first + static_cast<std::size_t>(which) + loop)));
  }
};

/// Stands in a kernel's buffers for memory that the matrix product gives: the panel that it writes, or the tile that it reads.
inline constexpr ValueId kPanel(codegen::kFirstLocal + 2);

}  // namespace tenon::llvm_backend
