#include "schedule/gpu_machine.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "loops/merging.h"
#include "schedule/schedule.h"

namespace tenon::cuda {
namespace {

constexpr codegen::Thresholds kThresholds = {
    .kernel_operations = 600,
    .inlined_cost = 300,
    .computing_kernels = 2,
    .part_writes = 6,
    .rows_at_once = 32,
    .small_product = 16 * 1024,
    .shortest_run = 2,
    .rows_of_dots = 0,
    .rows_that_pay = 5,
    .rows_with_prologue = std::numeric_limits<double>::infinity(),
    .dear_prologue = 12,
    .small_picture = 64,
    .depthwise_gain = -8,
    .depthwise_taps = std::numeric_limits<double>::infinity(),
    .gathered_reduction = 8 * 1024,
};

/// Work that storing a value and reading it back costs, in operations: a thread computes some fifty in the time that it waits for 8 bytes.
constexpr double kStoreAndReload = 48;
constexpr double kCheaperThanLoad = 12, kKeptAlive = 24;
/// Elements of a row that a block passes over again: from the second-level cache.
constexpr double kRowNear = 16 * 1024, kLongRow = 4 * 1024, kFewRows = 256;

/// Multiplications of a product, its rows and columns, and what it sums, from which tensor cores are a gain.
constexpr double kLargeProduct = 256 * 1024, kFewestRows = 8, kShortestSum = 64;

/// Threads that a card runs at once, and results that one of them has in a column. Points from which a piece of a row, or of a column, is worth
/// a result of its own; and how many pieces there are then.
constexpr double kFilledCard = 256 * 1024, kLanes = 4, kShortestRow = 4096, kShortestColumn = 64, kFewestParts = 4, kMostParts = 1024;

/// Operations of a kernel that leaves most of a card empty, for less time than its launch takes.
constexpr double kSmallLaunch = 1024 * 1024;

/// What is read in short runs, a run for each element along the last loop (the taps of weights whose channels are moved to the end), is read side by side by
/// threads that follow each other: else every one of them would read each run again for each of its elements.
void order_by_short_reads(codegen::Kernel& kernel) {
  constexpr std::int64_t kShortRun = 16;
  if (!kernel.inner.empty() || kernel.outer.size() < 2) return;
  const auto is_read_so = [&](const codegen::Loop& loop) {
    if (!loop.extent.is_constant() || loop.extent.constant() > kShortRun || loop.extent.constant() < 2) return false;
    const auto is_load = [](const codegen::Operation& op) { return op.kind == codegen::OperationKind::load; };
    const auto runs = [&](const codegen::Operation& op) {
      const auto along = codegen::split_affine(op.offset, loop.variable), last = codegen::split_affine(op.offset, kernel.outer.back().variable);
      return is_load(op) && !op.masked && along && last && along->coefficient == codegen::Dim(1) && last->coefficient == loop.extent;
    };
    return std::ranges::count_if(kernel.operations, is_load) == 1 && std::ranges::any_of(kernel.operations, runs);
  };
  const auto found = std::find_if(kernel.outer.begin(), kernel.outer.end() - 1, is_read_so);
  if (found != kernel.outer.end() - 1) std::rotate(found, found + 1, kernel.outer.end());
}

}  // namespace

GpuMachine::GpuMachine(bool has_tensor_cores) : Machine(kThresholds), has_tensor_cores_(has_tensor_cores) {}

bool GpuMachine::worth_storing(double cost, std::size_t paths) const { return paths > 1 && cost * static_cast<double>(paths - 1) > kStoreAndReload; }

double GpuMachine::cost_of_load(double elements, double points, bool passing) const { return elements < points ? 1 : passing ? kKeptAlive : kCheaperThanLoad; }

bool GpuMachine::worth_storing_early(double bytes, double kept) const { return kept >= 1.25 * bytes; }

double GpuMachine::worth_keeping_alive(double bytes) const { return bytes * (1 + 1.0 / 32); }

/// Windows that overlap read each element a few times: what is cheap is computed in each.
bool GpuMachine::worth_storing_repeated(double cost, double repeats) const { return repeats >= 2 && cost >= kCheaperThanLoad && worth_storing(cost, static_cast<std::size_t>(repeats)); }

bool GpuMachine::worth_storing_scattered(double) const { return false; }

bool GpuMachine::worth_writing_part(double, double) const { return false; }

bool GpuMachine::worth_sweeping(std::size_t reductions) const { return reductions <= 4; }

/// Long rows of which there are few would leave most of a card empty.
bool GpuMachine::row_stays_near(double rows, double elements) const { return elements <= kRowNear && (rows >= kFewRows || elements < kLongRow); }

/// In registers: of two rows at most.
bool GpuMachine::worth_keeping_row(double, double bytes, double kept) const { return kept <= bytes; }

bool GpuMachine::is_large_product(double multiplications, bool, double) const { return has_tensor_cores_ && multiplications >= kLargeProduct; }

/// Few rows, or few columns, leave most of a block empty: their loops wait for memory alone. Very short sums of float32 err less by them.
bool GpuMachine::worth_matrix_kernel(const codegen::ProductSize& product) const {
  const bool is_short = product.depth < kShortestSum && !is_reduced_float(product.left);
  return multiplies(product.left) && multiplies(product.right) && !is_short && std::min(product.all_rows, product.all_columns) >= kFewestRows;
}

/// What an optimizer does with the gradient of a convolution's weight reads in another order than that is multiplied in.
bool GpuMachine::worth_following(const codegen::ProductSize& product, std::size_t reads) const { return reads == 0 || !product.over_windows; }

/// Where the rows of both operands stay in registers and in shared memory.
bool GpuMachine::worth_chaining(const codegen::ChainSize& chain) const {
  constexpr double kMostElements = 128;
  return has_tensor_cores_ && chain.is_softmax && chain.depth <= kMostElements && chain.columns <= kMostElements;
}

bool GpuMachine::worth_pooling(double, std::int64_t, std::int64_t) const { return false; }

bool GpuMachine::worth_transforming(DType, double, double, double) const { return false; }

bool GpuMachine::fills_matrix_kernel(double, DType) const { return true; }

/// So many that there are threads for all of a card: by the shape alone, so that every run and every card adds in the same order.
std::int64_t GpuMachine::parts(const codegen::Kernel& kernel, const codegen::IndexAlgebra& algebra) const {
  const double results = codegen::estimated_points(algebra, kernel.outer), points = codegen::estimated_points(algebra, kernel.inner);
  const bool columns = runs_along_columns(kernel);
  const double threads = columns ? results / kLanes * kColumnTeam : results * kBlock;
  const double most = std::min({kFilledCard / threads, points / (columns ? kShortestColumn : kShortestRow), kMostParts});
  if (most < kFewestParts) return 1;
  const auto parts = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(most)));
  const codegen::Dim& extent = std::ranges::max_element(kernel.inner, {}, [&](const codegen::Loop& l) { return algebra.estimate(l.extent); })->extent;
  if (!extent.is_constant()) return parts;
  for (std::int64_t even = parts; 2 * even > parts; --even)
    if (extent.constant() % even == 0) return even;
  return std::min(parts, extent.constant());
}

void GpuMachine::shape(codegen::Kernel& kernel, codegen::IndexAlgebra& algebra, const codegen::KeepRow& worth) const {
  if (kernel.scatter) return;
  codegen::order_by_store(kernel, kernel.outer, algebra);
  codegen::merge_contiguous(kernel, kernel.inner, algebra);
  codegen::merge_contiguous(kernel, kernel.outer, algebra);
  order_by_short_reads(kernel);
  if (may_keep_rows(kernel)) codegen::keep_rows(kernel, algebra, worth);
}

bool GpuMachine::worth_joint_launch(double operations) const { return operations <= kSmallLaunch; }

}  // namespace tenon::cuda
