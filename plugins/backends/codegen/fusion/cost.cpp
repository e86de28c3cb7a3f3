#include "fusion/cost.h"

#include <algorithm>
#include <cmath>

namespace tenon::codegen {

namespace {

/// Work that storing a value and reading it back costs, in operations.
constexpr double kStoreAndReload = 24;
/// Below this, computing an operand again costs about what loading it does.
constexpr double kCheaperThanLoad = 6;
/// What loading costs of a value that is kept in memory for it; and so much memory is too much to be kept for an array of size 1.
constexpr double kKeptAlive = 12, kMuchKept = 1.25;
/// What is small beside all that is alive, so that it does not matter how long it is kept.
constexpr double kSmallShare = 1.0 / 32;
/// Reductions that need each other in a kernel: a softmax of a normalised row has four.
constexpr std::size_t kMostReductions = 4;
/// Elements of a row that stay in a second-level cache while its kernel passes over them again; and in a third-level one, where there are
/// so many rows that threads have enough to do.
constexpr double kRowInCache = 64 * 1024, kRowInLargeCache = 256 * 1024, kManyRows = 16;
/// Bytes of rows that a kernel may keep besides what it reads and writes.
constexpr double kRowsInCache = 512 * 1024;
/// A row that even a kernel without parallel rows may pass over several times.
constexpr double kTinyRow = 16 * 1024;
/// Multiplications of one product of a batch up to which packing its right operand costs more than multiplying.
constexpr double kTinyProduct = 128;
/// The part of the tiles' columns that should be used.
constexpr double kMostlyFull = 0.75;

/// Operations that take a thread some hundred microseconds.
constexpr double kShortRun = 2e6;

/// Elements of a block of rows between two products, for so few rows; and the most columns on the other side of each product.
constexpr double kChainedBlock = 256 * 1024, kFewestChainedRows = 12, kChainedWidth = 256;

/// Elements of a product's rows that are pooled together, and the most that the first of them may need; and of the least product for it.
constexpr std::int64_t kPooledBlock = 64 * 1024, kLargestPooledBlock = 256 * 1024;
constexpr double kPooledProduct = 512 * 1024;

/// Pixels and channels from which transforming a convolution pays.
constexpr double kTransformedPixels = 128, kTransformedChannels = 24;
/// The most weights of one tap, so that those of all places are read at the speed of a cache; and the least side of a picture.
constexpr double kLargeSquareWeights = 256 * 256, kLargeSquarePicture = 4;

bool is_arithmetic(const ops::Instruction& i) { return i.op > ops::Primitive::load && i.dtype != DType::i64; }

}  // namespace

double own_cost(const ops::LoopBody& body) {
  double cost = 0;
  for (const ops::Instruction& i : body.element.instructions)
    if (is_arithmetic(i)) cost += cost_of(i.op, i.dtype);
  return cost;
}

bool worth_storing(double cost, std::size_t paths) {
  return paths > 1 && cost * static_cast<double>(paths - 1) > kStoreAndReload;
}

double cost_of_load(double elements, double points, bool passing) { return elements < points ? 1 : passing ? kKeptAlive : kCheaperThanLoad; }

bool worth_storing_early(double bytes, double kept) { return kept >= kMuchKept * bytes; }

double worth_keeping_alive(double bytes) { return bytes * (1 + kSmallShare); }

bool worth_sweeping(std::size_t reductions) { return reductions <= kMostReductions; }

bool worth_storing_repeated(double cost, double repeats) { return repeats >= 2 && cost >= kCheaperThanLoad; }

bool worth_storing_scattered(double cost) { return cost >= kCheaperThanLoad; }

bool worth_matrix_kernel(const IndexAlgebra& algebra, const ContractionStep& product) {
  const double depth = algebra.estimate(product.steps) * algebra.estimate(product.step_depth);
  const bool many_tiny = !product.batch.empty() && algebra.estimate(product.m) * algebra.estimate(product.n) * depth <= kTinyProduct;
  if (many_tiny) return false;
  if (product.m == Dim(1) && product.n == Dim(1)) return false;  // as a loop nest vectors run along each sum, and threads share it
  return !(product.a.pack || product.b.pack) || algebra.estimate(product.m) >= kRowsThatPay;
}

bool worth_keeping_row(double operations, double bytes, double kept) { return operations >= kCheaperThanLoad && bytes + kept <= kRowsInCache; }

bool worth_writing_part(double whole_elements, double part_elements) {
  constexpr double kSmallWhole = 512, kLargestShare = 0.25;
  return whole_elements >= kSmallWhole && part_elements <= kLargestShare * whole_elements;
}

bool worth_joint_launch(double operations) { return operations <= kShortRun; }

bool worth_chaining(const IndexAlgebra& algebra, const ChainStep& chain) {
  const double depth = algebra.estimate(chain.first.steps) * algebra.estimate(chain.first.step_depth), columns = algebra.estimate(chain.second.n);
  return (chain.by_blocks || algebra.estimate(chain.first.n) * kFewestChainedRows <= kChainedBlock) && depth <= kChainedWidth && columns <= kChainedWidth;
}

std::int64_t pooled_rows(double elements, std::int64_t row_elements, std::int64_t step, std::int64_t window) {
  if (elements < kPooledProduct || window * row_elements > kLargestPooledBlock) return 0;
  return std::max<std::int64_t>(1, (kPooledBlock / row_elements - window) / step + 1);
}

bool fills_tiles(double columns, int tile_columns) {
  const double tiles = std::ceil(columns / tile_columns);
  return columns >= kMostlyFull * tiles * tile_columns;
}

bool worth_transforming(const IndexAlgebra& algebra, std::span<const Loop> rows, std::span<const Loop> columns, const Loop& run) {
  return estimated_points(algebra, rows) >= kTransformedPixels && estimated_points(algebra, columns) >= kTransformedChannels && algebra.estimate(run.extent) >= kTransformedChannels;
}

bool worth_large_squares(const IndexAlgebra& algebra, const Picture& picture, std::span<const Loop> columns, const Loop& run) {
  const double weights = algebra.estimate(run.extent) * estimated_points(algebra, columns);
  return weights <= kLargeSquareWeights && algebra.estimate(picture.height) >= kLargeSquarePicture && algebra.estimate(picture.width) >= kLargeSquarePicture;
}

bool row_fits(const IndexAlgebra& algebra, std::span<const Loop> outer, std::span<const Loop> inner) {
  const double rows = estimated_points(algebra, outer), row = estimated_points(algebra, inner);
  return row <= (rows >= kManyRows ? kRowInLargeCache : rows >= 4 ? kRowInCache : kTinyRow);
}

}  // namespace tenon::codegen
