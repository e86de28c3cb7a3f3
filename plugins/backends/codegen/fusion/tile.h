// Where a tile of a matrix product lies: symbols after the graph's own, which the kernels around a product take like sizes.
#pragma once

#include <cstdint>

#include "core/ir/dim.h"
#include "core/ir/graph.h"

namespace tenon::codegen {

/// `row`, `column`: the first of the tile, of `rows` and `columns`. `step`, `steps`: the part of the first summed loop. `batch`: the
/// first of kMaxBatchLoops loops that a product is repeated over.
enum class TileSymbol : std::uint32_t { row, rows, column, columns, step, steps, batch };

inline constexpr std::size_t kMaxBatchLoops = 6;
inline constexpr std::size_t kTileSymbols = static_cast<std::size_t>(TileSymbol::batch) + kMaxBatchLoops;

/// Rows of a result that are finished together; so many rows of a table of windows lie beside each other.
inline constexpr std::int64_t kFinishedRows = 48;

/// Columns of the panel between two products that are taken at a time when softmax is taken apart; its rows are a little further apart,
/// so that they do not crowd in few sets of the caches.
inline constexpr std::int64_t kBlockColumns = 512, kPanelStride = kBlockColumns + 16;

/// What is known of a row of such a panel: its largest score and the sum of exponentials before a block of columns; the same after it;
/// and by how much the block makes smaller what was summed before.
enum class RowState : std::uint32_t { largest, sum, new_largest, new_sum, factor, count };

/// Where the state of the panel's rows lies: behind the panel, kFinishedRows numbers of each kind.
inline constexpr std::int64_t place_of(RowState state) { return kFinishedRows * (kPanelStride + static_cast<std::int64_t>(state)); }

/// Gives the symbol; `loop` numbers the batch loops.
inline ir::Dim tile_symbol(const ir::Graph& graph, TileSymbol which, std::size_t loop = 0) {
  return ir::Dim::symbol(SymbolId(static_cast<std::uint32_t>(graph.symbols().size() + static_cast<std::size_t>(which) + loop)));
}

}  // namespace tenon::codegen
