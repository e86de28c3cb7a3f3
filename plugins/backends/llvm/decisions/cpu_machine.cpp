#include "decisions/cpu_machine.h"

#include <algorithm>
#include <cmath>

#include "decisions/loop_shaping.h"
#include "loops/row_buffers.h"
#include "matrix/amx_kernel.h"
#include "matrix/microkernel.h"
#include "matrix/winograd.h"

namespace tenon::llvm_backend {
namespace {

using codegen::IndexAlgebra;
using codegen::Kernel;

constexpr codegen::Thresholds kThresholds = {
    .kernel_operations = 600,
    .inlined_cost = 300,
    .computing_kernels = 2,
    .part_writes = 6,
    .rows_at_once = 64,
    .small_product = 16 * 1024,
    .shortest_run = 16,
    .rows_of_dots = 48,
    .rows_that_pay = 5,
    .rows_with_prologue = 512,
    .dear_prologue = 12,
    .small_picture = 64,
    .depthwise_gain = 4,
    .depthwise_taps = 25,
    .gathered_reduction = 8 * 1024,
};

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

/// The fewest rows of a product whose columns are added up as it comes.
constexpr std::int64_t kSummedRows = 4 * kFinishedRows;

/// A product over windows, or with fewer columns than lanes, that is smaller than this is a loop nest, which gathers.
constexpr double kSmallGatheredProduct = 2 * 1024;
/// Multiplications of one product of a batch up to which packing its right operand costs more than multiplying.
constexpr double kTinyProduct = 128;
/// Elements of a sum of which a packed panel fills a second-level cache, with the panels of AVX-512, and the most results for which all of their sums stay
/// in one.
constexpr double kLongSum = 4 * 1024, kFewSums = 128 * 1024;
/// The part of the tiles' columns that should be used.
constexpr double kMostlyFull = 0.75;

/// Operations that take a thread some hundred microseconds.
constexpr double kShortRun = 2e6;

/// Elements of a block of rows between two products, for so few rows; and the most columns on the other side of each product.
constexpr double kChainedBlock = 256 * 1024, kFewestChainedRows = 12, kChainedWidth = 256;

/// Elements of a product's rows that are pooled together, and the most that the first of them may need; and of the least product for it.
constexpr std::int64_t kPooledBlock = 64 * 1024, kLargestPooledBlock = 256 * 1024;
constexpr double kPooledProduct = 512 * 1024;

/// Elements of a result beside which other values are near, and of a sum that is short (an EPYC with AVX2, one thread: p -= lr * g for 576 x 1024
/// weights takes a product of depth 64 0.1 ms more and one of depth 2 0.5 ms more; alone 0.2 ms).
constexpr double kNearResult = 64 * 1024, kShallowProduct = 16;
/// Lanes with which a tile's row is several lines of a cache. With AVX2 it is one (ResNet-18's 512 channels and Adam, one thread: 78 ms where the
/// product takes 21 and a pass 10).
constexpr unsigned kLanesOfWideTiles = 16;

/// Pixels and channels from which transforming a convolution pays.
constexpr double kTransformedPixels = 128, kTransformedChannels = 24;
/// The most weights of one tap, so that those of all places are read at the speed of a cache; and the least side of a picture.
constexpr double kLargeSquareWeights = 256 * 256, kLargeSquarePicture = 4;

/// A reduction of at least this many elements a unit into few results is done in parallel parts.
constexpr double kParallelReduction = 128 * 1024;
/// The number of those parts, of all results that a thread works on together: fixed, so that results do not depend on the number of threads.
constexpr std::int64_t kReductionParts = 64;
/// Units of a reduction up to which it has few results.
constexpr double kFewUnits = 8;

}  // namespace

CpuMachine::CpuMachine(const Target& target)
    : Machine(kThresholds), lanes_(target.lanes()), has_half_(target.has_f16c), has_bf16_pairs_(target.has_bf16_pairs), has_bf16_tiles_(target.has_bf16_tiles) {}

bool CpuMachine::worth_storing(double cost, std::size_t paths) const { return paths > 1 && cost * static_cast<double>(paths - 1) > kStoreAndReload; }

double CpuMachine::cost_of_load(double elements, double points, bool passing) const { return elements < points ? 1 : passing ? kKeptAlive : kCheaperThanLoad; }

bool CpuMachine::worth_storing_early(double bytes, double kept) const { return kept >= kMuchKept * bytes; }

double CpuMachine::worth_keeping_alive(double bytes) const { return bytes * (1 + kSmallShare); }

bool CpuMachine::worth_storing_repeated(double cost, double repeats) const { return repeats >= 2 && cost >= kCheaperThanLoad; }

bool CpuMachine::worth_storing_scattered(double cost) const { return cost >= kCheaperThanLoad; }

bool CpuMachine::worth_writing_part(double whole_elements, double part_elements) const {
  constexpr double kSmallWhole = 512, kLargestShare = 0.34;  // one of three channels
  return whole_elements >= kSmallWhole && part_elements <= kLargestShare * whole_elements;
}

bool CpuMachine::worth_sweeping(std::size_t reductions) const { return reductions <= kMostReductions; }

bool CpuMachine::row_stays_near(double rows, double elements) const {
  return elements <= (rows >= kManyRows ? kRowInLargeCache : rows >= 4 ? kRowInCache : kTinyRow);
}

bool CpuMachine::worth_keeping_row(double operations, double bytes, double kept) const { return operations >= kCheaperThanLoad && bytes + kept <= kRowsInCache; }

bool CpuMachine::is_large_product(double multiplications, bool over_windows, double columns) const {
  return multiplications >= (over_windows || columns < lanes_ ? kSmallGatheredProduct : thresholds.small_product);
}

bool CpuMachine::worth_matrix_kernel(const codegen::ProductSize& product) const {
  if (product.is_repeated && product.rows * product.columns * product.depth <= kTinyProduct) return false;
  if (product.is_dot) return false;  // as a loop nest vectors run along each sum, and threads share it
  const bool in_pairs = multiplies_pairs(product.left) && multiplies_pairs(product.right) && std::fmod(product.depth, 2) == 0;
  const bool writes_operand = product.writes_operand || ((is_reduced_float(product.left) || is_reduced_float(product.right)) && !in_pairs);
  return !writes_operand || product.rows >= thresholds.rows_that_pay;
}

/// Tiles read short runs of other values. Those of one value come while a tile is multiplied, if that takes long enough; with more of them the
/// product is slower by more than a pass over all of it takes. The rows of a gradient of a convolution's weight are long, and tiles of it read runs that
/// are no shorter than those of other products only where they are wide.
bool CpuMachine::worth_following(const codegen::ProductSize& product, std::size_t read) const {
  if (product.over_windows && lanes_ >= kLanesOfWideTiles) return true;
  return read == 0 || product.rows * product.columns <= kNearResult || (read == 1 && product.depth >= kShallowProduct);
}

bool CpuMachine::worth_leaving_unpacked(const codegen::ProductSize& product) const {
  return lanes_ >= kLanesOfWideTiles && product.depth >= kLongSum && product.rows * product.columns <= kFewSums;
}

/// A block of rows must stay in cache, and so should what each of the products is multiplied with, which is read again for every block.
bool CpuMachine::worth_chaining(const codegen::ChainSize& chain) const {
  return (chain.is_softmax || chain.between * kFewestChainedRows <= kChainedBlock) && chain.depth <= kChainedWidth && chain.columns <= kChainedWidth;
}

bool CpuMachine::worth_pooling(double elements, std::int64_t row_elements, std::int64_t window) const {
  return elements >= kPooledProduct && window * row_elements <= kLargestPooledBlock;
}

/// So many that the rows of the product stay in a second-level cache.
std::int64_t CpuMachine::pooled_rows(std::int64_t row_elements, std::int64_t step, std::int64_t window) const {
  return std::max<std::int64_t>(1, (kPooledBlock / row_elements - window) / step + 1);
}

/// Pairs are halves of a run.
bool CpuMachine::reads_runs_of(DType dtype, const codegen::Dim& length) const {
  return !is_reduced_float(dtype) || (multiplies_pairs(dtype) && length.is_constant() && length.constant() % 2 == 0);
}

/// Squares are transformed in float32.
bool CpuMachine::worth_transforming(DType dtype, double rows, double columns, double run) const {
  return !is_reduced_float(dtype) && rows >= kTransformedPixels && columns >= kTransformedChannels && run >= kTransformedChannels;
}

/// Large squares multiply less still, and have more than twice the weights.
std::int64_t CpuMachine::side_of_squares(double weights, double height, double width) const {
  return weights <= kLargeSquareWeights && height >= kLargeSquarePicture && width >= kLargeSquarePicture ? kLargeSquare : kSmallSquare;
}

std::int64_t CpuMachine::panel_columns(DType dtype) const { return has_bf16_tiles_ && dtype == DType::bf16 ? kAmxTile.columns : tile_columns(lanes_, compute_type(dtype)); }

bool CpuMachine::fills_matrix_kernel(double columns, DType dtype) const {
  const auto width = static_cast<double>(panel_columns(dtype));
  return columns >= kMostlyFull * std::ceil(columns / width) * width;
}

/// So many that threads have enough to do: 1 when the kernel's units do by themselves.
std::int64_t CpuMachine::parts(const Kernel& kernel, const IndexAlgebra& algebra) const {
  Kernel shaped = kernel;
  IndexAlgebra own = algebra;
  shape_loops(shaped, own, lanes_);
  const double units = std::max(1.0, own.estimate(unit_count(shaped))), points = own.estimate(points_per_unit(shaped));
  if (units > kFewUnits || points < kParallelReduction) return 1;
  return kReductionParts / static_cast<std::int64_t>(units);
}

void CpuMachine::shape(Kernel& kernel, IndexAlgebra& algebra, const codegen::KeepRow& worth) const {
  shape_loops(kernel, algebra, lanes_);
  if (schedule_of(kernel).lanes_inside) codegen::keep_rows(kernel, algebra, worth);
}

/// What is finished together is a part: some rows, or a line of squares. Few rows are multiplied in other ways, and stay near.
std::int64_t CpuMachine::parts_of_rows(const codegen::ResultRows& r) const {
  if (is_reduced_float(r.dtype) || r.rows < kSummedRows) return 0;
  const auto parts = [](std::int64_t count, std::int64_t size) { return (count + size - 1) / size; };
  const std::int64_t places = r.picture_height * r.picture_width;
  return std::max(parts(r.rows, kFinishedRows), places > 0 ? r.rows / places * parts(r.picture_height, kSmallSquare) : 0);
}

bool CpuMachine::worth_joint_launch(double operations) const { return operations <= kShortRun; }

}  // namespace tenon::llvm_backend
