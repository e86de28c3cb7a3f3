#include "schedule/gpu_machine.h"

#include "loops/merging.h"

namespace tenon::cuda {
namespace {

constexpr codegen::Thresholds kThresholds = {
    .kernel_operations = 600,
    .inlined_cost = 300,
    .computing_kernels = 2,
    .part_writes = 6,
    .rows_at_once = 32,
    .small_product = 16 * 1024,
    .shortest_run = 16,
    .rows_of_dots = 48,
    .rows_that_pay = 5,
    .rows_with_prologue = 512,
    .dear_prologue = 12,
    .small_picture = 64,
    .depthwise_loss = 8,
    .gathered_reduction = 8 * 1024,
};

/// Work that storing a value and reading it back costs, in operations: a thread computes some fifty in the time that it waits for 8 bytes.
constexpr double kStoreAndReload = 48;
constexpr double kCheaperThanLoad = 12, kKeptAlive = 24;
/// Elements of a row that a block passes over again: from the second-level cache.
constexpr double kRowNear = 16 * 1024;

}  // namespace

GpuMachine::GpuMachine() : Machine(kThresholds) {}

bool GpuMachine::worth_storing(double cost, std::size_t paths) const { return paths > 1 && cost * static_cast<double>(paths - 1) > kStoreAndReload; }

double GpuMachine::cost_of_load(double elements, double points, bool passing) const { return elements < points ? 1 : passing ? kKeptAlive : kCheaperThanLoad; }

bool GpuMachine::worth_storing_early(double bytes, double kept) const { return kept >= 1.25 * bytes; }

double GpuMachine::worth_keeping_alive(double bytes) const { return bytes * (1 + 1.0 / 32); }

bool GpuMachine::worth_storing_repeated(double cost, double repeats) const { return repeats >= 2 && cost >= kCheaperThanLoad; }

bool GpuMachine::worth_storing_scattered(double) const { return false; }

bool GpuMachine::worth_writing_part(double, double) const { return false; }

bool GpuMachine::worth_sweeping(std::size_t reductions) const { return reductions <= 4; }

bool GpuMachine::row_stays_near(double, double elements) const { return elements <= kRowNear; }

/// A sweep computes again: what a team keeps has no place yet.
bool GpuMachine::worth_keeping_row(double, double, double) const { return false; }

/// Products have no kernels yet.
bool GpuMachine::is_large_product(double, bool, double) const { return false; }

bool GpuMachine::worth_matrix_kernel(const codegen::ProductSize&) const { return false; }

bool GpuMachine::worth_chaining(const codegen::ChainSize&) const { return false; }

std::int64_t GpuMachine::pooled_rows(double, std::int64_t, std::int64_t, std::int64_t) const { return 0; }

bool GpuMachine::worth_transforming(double, double, double) const { return false; }

bool GpuMachine::fills_matrix_kernel(double, DType) const { return true; }

std::int64_t GpuMachine::parts(const codegen::Kernel&, const codegen::IndexAlgebra&) const { return 1; }

void GpuMachine::shape(codegen::Kernel& kernel, codegen::IndexAlgebra& algebra, const codegen::KeepRow&) const {
  if (kernel.scatter) return;
  codegen::order_by_store(kernel, kernel.outer);
  codegen::merge_contiguous(kernel, kernel.inner, algebra);
  codegen::merge_contiguous(kernel, kernel.outer, algebra);
}

bool GpuMachine::worth_joint_launch(double) const { return false; }

}  // namespace tenon::cuda
