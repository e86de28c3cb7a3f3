// How much of a matrix product is taken at a time, by what stays in a core's caches.
#pragma once

#include <cstdint>

#include "matrix/microkernel.h"

namespace tenon::llvm_backend {

/// The most elements of the sum that one pass takes. Passes are added up: the error of a long sum of n numbers is then like that of sums of
/// so many. Libraries add up fewer of a convolution at a time than of a matrix. Longer passes load and store the tile less often; as long
/// as a panel's rows of them stay in a cache that feeds the multiplications: the first level where a row is 64 bytes (AVX2), the second
/// where it is 256 (AVX-512).
inline constexpr std::int64_t kPassDepth = 256, kWidePassDepth = 384;
/// Elements of the left operand that are multiplied with a group of panels before the next ones: half a second-level cache.
inline constexpr std::int64_t kCachedElements = 128 * 1024;
/// Elements of all panels up to which a thread packs the rows that it multiplies: it reads the panels again for each block of rows.
inline constexpr std::int64_t kReadAgain = 512 * 1024;
/// Panels that a thread packs at once, when there are many, and the elements that they should not exceed. Tile registers multiply so fast that the left
/// operand, which is read once for each group, must come from memory less often.
inline constexpr std::int64_t kPanelGroup = 4, kGroupForTiles = 16;
inline constexpr std::int64_t kGroupElements = 256 * 1024;
/// Passes over a long sum that rows of the left operand stay in cache for, where a tile's row is a line of the cache: a block of whole rows would not, and
/// is read again for every panel.
inline constexpr std::int64_t kPassesOfSlab = 2;
/// Steps of the sum that one dot product takes.
inline constexpr std::int64_t kDotDepth = 4096;
/// Rows of the pieces in which the last panels are shared out.
inline constexpr std::int64_t kPieceRows = 2 * kFinishedRows;

}  // namespace tenon::llvm_backend
