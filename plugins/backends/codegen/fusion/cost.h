// Every decision of fusion that is about cost and not about possibility. All numbers are here.
#pragma once

#include "core/ops/view.h"
#include "fusion/draft.h"
#include "fusion/plan.h"

namespace tenon::codegen {

/// What a node costs at one point of its loops, without its operands: an ordinary operation counts 1.
double own_cost(const ops::LoopBody& body);

/// Decides whether a value that several consumers read is computed once into memory. `paths` counts the consumers that cannot share
/// one computation (readers of the same shape at the same point count as one).
bool worth_storing(double cost, std::size_t paths);

/// What loading an element costs at each of `points` points, in operations, of a value of so many `elements`: small ones stay in registers or
/// near them, and `passing` ones, which nothing else may need any more, are kept alive by it.
double cost_of_load(double elements, double points, bool passing);

/// So many kernels compute a value before one is opened for it alone.
inline constexpr std::size_t kEnoughKernels = 2;

/// Decides whether a value of so many bytes that is needed later is computed early: so many bytes of others would be kept for it alone.
bool worth_storing_early(double bytes, double kept);

/// Bytes that a plan may keep alive at once where nodes that run one by one keep so many: hardly more.
double worth_keeping_alive(double bytes);

/// Decides whether a kernel may pass over its rows once more, behind a reduction that needs so many others one after the other.
bool worth_sweeping(std::size_t reductions);

/// Decides whether an operand that one consumer reads `repeats` times at each point is computed once into memory.
bool worth_storing_repeated(double cost, double repeats);

/// Decides whether an operand of a scatter, whose points run one at a time, is computed before it: then lanes compute it.
bool worth_storing_scattered(double cost);

/// Decides whether the inner loops of a kernel may run several times for each outer point (reduce, then map): the row must stay in
/// cache, and enough rows must be left for the threads.
bool row_fits(const IndexAlgebra& algebra, std::span<const Loop> outer, std::span<const Loop> inner);

/// Decides whether a value that costs `operations` and is needed by several sweeps over a row is kept for them, as a row of `bytes`, when
/// rows of `kept` bytes are kept already: the rows must stay in cache.
bool worth_keeping_row(double operations, double bytes, double kept);

/// Decides whether a product runs on the matrix kernel and not as a loop nest: not when an operand has to be written for few rows.
bool worth_matrix_kernel(const IndexAlgebra& algebra, const ContractionStep& product);

/// Decides whether two products share blocks of rows: a block must stay in cache, and so should what each of them is multiplied with,
/// which is read again for every block.
bool worth_chaining(const IndexAlgebra& algebra, const ChainStep& chain);

/// Rows of results of a pooling that are computed together, each from `window` rows of a product, `step` further than the last: so many
/// that the rows of the product stay in a second-level cache. 0 where that is not worth it: few `elements` of the product are in all.
std::int64_t pooled_rows(double elements, std::int64_t row_elements, std::int64_t step, std::int64_t window);

/// Decides whether a convolution of 3 x 3 taps is transformed (Winograd): fewer multiplications, but more weights to read and two
/// transformations for each run of channels.
bool worth_transforming(const IndexAlgebra& algebra, std::span<const Loop> rows, std::span<const Loop> columns, const Loop& run);

/// Decides whether such a convolution is transformed by large squares, where their error is allowed: fewer multiplications still, and more
/// than twice the weights.
bool worth_large_squares(const IndexAlgebra& algebra, const Picture& picture, std::span<const Loop> columns, const Loop& run);

/// Decides whether a run of `operations` starts together with others of the same kernel: long runs use the threads well by themselves,
/// and what they all write would be alive at once.
bool worth_joint_launch(double operations);

/// Decides whether a write to a part of a tensor may run over the part alone: then the tensor before it must be in memory, and is copied
/// when somebody reads it later. Few elements are chosen among in registers.
bool worth_writing_part(double whole_elements, double part_elements);

/// So many such writes follow each other at least, unless they update an input; fewer are choices for each element, in the kernel that reads
/// the whole.
inline constexpr std::size_t kFewestPartWrites = 6;

/// The shortest run of a window that is multiplied where it lies; shorter ones are copied to be longer.
inline constexpr double kShortestRun = 16;

/// Up to so many rows, dot products with a transposed matrix cost less than packing it.
inline constexpr double kRowsOfDots = 48;

/// Rows from which packing the other operand pays.
inline constexpr double kRowsThatPay = 5;

/// A left operand of at least so many rows and of fewer operations an element is computed while it is packed for the product.
inline constexpr double kRowsWithPrologue = 512, kDearPrologue = 12;

/// The most places of a picture at whose edges so many taps are padding that leaving them out pays.
inline constexpr double kSmallPicture = 64;

/// What a multiplication of a depthwise convolution loses with channels last, in what one of a dense convolution gains: its weights
/// are then gathered.
inline constexpr double kDepthwiseLoss = 8;

/// Decides whether so many columns fill tiles of the given width well.
bool fills_tiles(double columns, int tile_columns);

/// The most operations of one kernel; more are split, so that registers and compile time stay bounded.
inline constexpr std::size_t kMaxKernelOperations = 600;

/// The longest expression of one value, in operations.
inline constexpr double kMaxInlinedCost = 300;

/// A product of fewer multiplications than this runs as a loop nest, fused with its neighbours.
inline constexpr double kSmallContraction = 16 * 1024;
/// The same of one over windows, or with fewer columns than lanes: a loop nest gathers.
inline constexpr double kSmallGatheredContraction = 2 * 1024;

/// A reduction of at least this many elements a unit into few results is done in parallel parts.
inline constexpr double kParallelReduction = 128 * 1024;
/// The number of those parts, of all results that a thread works on together: fixed, so that results do not depend on the number of threads.
inline constexpr std::int64_t kReductionParts = 64;
/// Units of a reduction up to which it has few results.
inline constexpr double kFewUnits = 8;
/// A reduction of at least this many elements that lanes would gather gets partial results for what is contiguous.
inline constexpr double kGatheredReduction = 8 * 1024;

}  // namespace tenon::codegen
