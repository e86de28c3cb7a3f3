// What planning asks of the machine: every decision that is about cost and not about possibility.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/dtype.h"
#include "loops/kernel.h"
#include "loops/row_buffers.h"

namespace tenon::codegen {

/// Numbers that a machine is known by. An operation is what an addition costs.
struct Thresholds {
  std::size_t kernel_operations;   // the most of one kernel; more are split, so that registers and compile time stay bounded
  double inlined_cost;             // the longest expression of one value
  std::size_t computing_kernels;   // so many kernels compute a value before one is opened for it alone
  std::size_t part_writes;         // so many writes to parts of a tensor follow each other at least, unless they update an input; fewer are
                                   // choices for each element, in the kernel that reads the whole
  std::int64_t rows_at_once;       // rows that a kernel passes over together, where not the row is contiguous but they are side by side

  double small_product;            // multiplications; a smaller one is a loop nest, fused with its neighbours
  double shortest_run;             // of a window that is multiplied where it lies; shorter ones are copied to be longer
  double rows_of_dots;             // up to so many, dot products with a transposed matrix cost less than packing it
  double rows_that_pay;            // rows from which packing the other operand pays
  double rows_with_prologue;       // a left operand of at least so many rows …
  double dear_prologue;            // … and of fewer operations an element is computed while it is packed
  double small_picture;            // the most places of a picture at whose edges so many taps are padding that leaving them out pays
  double depthwise_gain;           // what a multiplication of a depthwise convolution gains with channels last, in what a dense one gains; less than 0 where it loses
  double depthwise_taps;           // of one alone from which copying its pictures to channels last and back pays

  double gathered_reduction;       // elements from which a reduction gets partial results for what is contiguous
};

/// A product in estimates.
struct ProductSize {
  double rows, columns, depth;
  bool is_repeated;     // over batch loops
  bool is_dot;          // one row and one column
  bool writes_operand;  // one operand is written for it
  bool over_windows;    // some operand lies in runs of a picture
  DType left = DType::f32, right = DType::f32;  // of the operands
  double all_rows = 0, all_columns = 0;  // with the batch loops that step along one operand alone
};

/// The rows of a product's result; those of pictures are its pixels, row by row.
struct ResultRows {
  std::int64_t rows, columns;
  DType dtype;
  std::int64_t picture_height = 0, picture_width = 0;
};

/// Two products with a kernel over whole rows between them, in estimates.
struct ChainSize {
  double depth, between, columns;  // of the first product's sum; of a row between them; of what the second gives
  bool is_softmax;                 // what is made of a row between them, so that it may be taken a block at a time
};

/// Answers are the same for the same question: plans are part of no key.
class Machine {
 public:
  explicit Machine(const Thresholds& thresholds) : thresholds(thresholds) {}
  virtual ~Machine() = default;

  const Thresholds thresholds;

  // ---- values
  /// Whether a value that several consumers read is computed once into memory. `paths` counts the consumers that cannot share
  /// one computation (readers of the same shape at the same point count as one).
  virtual bool worth_storing(double cost, std::size_t paths) const = 0;
  /// What loading an element costs at each of `points` points, in operations, of a value of so many `elements`: small ones stay in registers or
  /// near them, and `passing` ones, which nothing else may need any more, are kept alive by it.
  virtual double cost_of_load(double elements, double points, bool passing) const = 0;
  /// Whether a value of so many bytes that is needed later is computed early: so many bytes of others would be kept for it alone.
  virtual bool worth_storing_early(double bytes, double kept) const = 0;
  /// Bytes that a plan may keep alive at once where nodes that run one by one keep so many: hardly more.
  virtual double worth_keeping_alive(double bytes) const = 0;
  /// Whether an operand that one consumer reads `repeats` times at each point is computed once into memory.
  virtual bool worth_storing_repeated(double cost, double repeats) const = 0;
  /// Whether an operand of a scatter, whose points run one at a time, is computed before it.
  virtual bool worth_storing_scattered(double cost) const = 0;
  /// Whether a write to a part of a tensor may run over the part alone: then the tensor before it must be in memory, and is copied
  /// when somebody reads it later. Few elements are chosen among in registers.
  virtual bool worth_writing_part(double whole_elements, double part_elements) const = 0;

  // ---- rows
  /// Whether a kernel may pass over its rows once more, behind a reduction that needs so many others one after the other.
  virtual bool worth_sweeping(std::size_t reductions) const = 0;
  /// Whether the inner loops of a kernel may run several times for each outer point (reduce, then map): `elements` of a row must stay near,
  /// and there must be enough rows.
  virtual bool row_stays_near(double rows, double elements) const = 0;
  /// A KeepRow.
  virtual bool worth_keeping_row(double operations, double bytes, double kept) const = 0;

  // ---- products
  /// Whether so many multiplications are a product: over windows a loop nest would gather, and `columns` may be fewer than fill a vector.
  virtual bool is_large_product(double multiplications, bool over_windows, double columns) const = 0;
  /// Whether a product runs as one and not as a loop nest.
  virtual bool worth_matrix_kernel(const ProductSize& product) const = 0;
  /// Whether what follows a product point by point runs part by part as the product comes, where it reads so many other values as large as the
  /// result, or writes the product as well.
  virtual bool worth_following(const ProductSize& product, std::size_t others) const = 0;
  /// Whether what follows a product may walk over its result in another order of the loops than the product's own.
  virtual bool follows_in_any_order() const = 0;
  /// Whether two products share blocks of rows.
  virtual bool worth_chaining(const ChainSize& chain) const = 0;
  /// Whether a product of so many elements is pooled as it comes: while `window` rows of a picture of it, which a row of results reads, are near.
  virtual bool worth_pooling(double elements, std::int64_t row_elements, std::int64_t window) const = 0;
  /// In how many parts of rows at most a product comes, where sums over its rows are taken part by part as it comes; 0 where they are not.
  virtual std::int64_t parts_of_rows(const ResultRows& rows) const = 0;
  /// Whether a convolution of 3 x 3 taps is transformed (Winograd): fewer multiplications, but more weights to read and two
  /// transformations for each run of channels.
  virtual bool worth_transforming(DType dtype, double rows, double columns, double run) const = 0;
  /// Whether a product of so many columns leaves little of a matrix kernel unused.
  virtual bool fills_matrix_kernel(double columns, DType dtype) const = 0;
  /// Whether products multiply matrices of the dtype as they lie. Others are written for it.
  virtual bool multiplies(DType dtype) const = 0;
  /// Whether products of the dtype read a left operand in runs of such a length where they lie (`Windows`).
  virtual bool reads_runs_of(DType dtype, const Dim& length) const = 0;
  /// Whether they read a right one so, a run for each element of the sum and each tap, beside a left one whose columns are contiguous.
  virtual bool reads_runs_of_columns(DType dtype) const = 0;
  /// Whether it does so also where both operands are matrices, and could be packed: where the sum is long and few results come of it, what is packed does
  /// not stay near, and is read again for all rows.
  virtual bool worth_leaving_unpacked(const ProductSize& product) const = 0;

  // ---- schedules
  /// In how many parts a reduction is done whose inner loops nothing else splits: 1, or a number by shape alone, so that results are the same.
  virtual std::int64_t parts(const Kernel& kernel, const IndexAlgebra& algebra) const = 0;
  /// Puts the loops of a kernel in the order in which the machine runs them, adds the rows that it keeps, and may give it its schedule.
  virtual void shape(Kernel& kernel, IndexAlgebra& algebra, const KeepRow& worth) const = 0;
  /// Whether equal kernels of so many operations start together: long runs use the machine well by themselves, and what they all write would
  /// be alive at once.
  virtual bool worth_joint_launch(double operations) const = 0;
};

}  // namespace tenon::codegen
