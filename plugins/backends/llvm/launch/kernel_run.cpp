#include "kernel_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "decisions/cpu_schedule.h"
#include "scratch.h"

namespace tenon::llvm_backend {

namespace {

/// The least work that a thread takes at once.
constexpr double kGrainWork = 32 * 1024;

double work_of_point(const codegen::Kernel& kernel) { return std::max(1.0, codegen::work_per_point(kernel) / 4); }

/// Of a constant without a call: most are.
std::int64_t value_of(const ir::Dim& d, std::span<const std::int64_t> symbols) { return d.is_constant() ? d.offset() : d.evaluate(symbols); }

KernelFunction function_of(const CompiledKernel& kernel) { return kernel.code->function.load(std::memory_order_acquire); }

/// Runs the kernel with rows of this thread: they are the last buffers.
void run_with_rows(const CompiledKernel& kernel, std::span<void* const> buffers, std::span<const std::int64_t> symbols, std::int64_t first, std::int64_t last,
                   IndexFault& fault) {
  std::vector<std::size_t> offsets;
  std::size_t bytes = 0;
  for (const ir::Dim& row : kernel.rows) {
    offsets.push_back(bytes);
    bytes += (static_cast<std::size_t>(row.evaluate(symbols)) + 63) & ~std::size_t{63};
  }
  Scratch memory;
  auto* const start = static_cast<std::byte*>(memory.take(bytes));
  std::vector<void*> mine(buffers.begin(), buffers.end());
  for (std::size_t i = 0; i < offsets.size(); ++i) mine[mine.size() - offsets.size() + i] = start + offsets[i];
  function_of(kernel)(mine.data(), kernel.sizes.empty() ? symbols.data() : kernel.sizes.data(), first, last, &fault);
}

void call_units(const CompiledKernel& kernel, std::span<void* const> buffers, std::span<const std::int64_t> symbols, std::int64_t first, std::int64_t last, IndexFault& fault) {
  if (!kernel.rows.empty()) return run_with_rows(kernel, buffers, symbols, first, last, fault);
  function_of(kernel)(buffers.data(), kernel.sizes.empty() ? symbols.data() : kernel.sizes.data(), first, last, &fault);
}

}  // namespace

bool is_small(const codegen::Kernel& kernel) {
  const ir::Dim points = unit_count(kernel) * points_per_unit(kernel);
  return points.is_constant() && static_cast<double>(points.constant()) * work_of_point(kernel) < kSerialWork;
}

CompiledKernel compiled(const codegen::Kernel& kernel, std::shared_ptr<const KernelCode> code, std::vector<Place> places, std::size_t runs) {
  std::vector<ir::Dim> rows;
  for (const codegen::Buffer& b : kernel.buffers)
    if (b.row) rows.push_back(b.bytes);
  return {std::move(code), unit_count(kernel), points_per_unit(kernel), work_of_point(kernel), runs, std::move(places), {}, std::move(rows)};
}

void check(const IndexFault& fault) {
  if (!fault.raised) return;
  throw Failure(TENON_INVALID_ARGUMENT, fmt::format("index {} is out of bounds for dimension {} with size {}", fault.index, fault.dimension, fault.size));
}

void run_part(const CompiledKernel& kernel, std::span<void* const> buffers, std::span<const std::int64_t> symbols) {
  run_units(kernel, buffers, symbols, 0, kernel.units.evaluate(symbols));
}

void run_units(const CompiledKernel& kernel, std::span<void* const> buffers, std::span<const std::int64_t> symbols, std::int64_t first, std::int64_t last) {
  IndexFault fault;
  call_units(kernel, buffers, symbols, first, last, fault);
  check(fault);
}

void run(const HostServices& host, const CompiledKernel& kernel, const Call& call) {
  const std::int64_t units = value_of(kernel.units, call.symbols);
  if (units <= 0) return;
  std::array<void*, 32> few;
  std::vector<void*> many;
  void** buffers = few.data();
  if (kernel.buffers.size() > few.size()) {
    many.resize(kernel.buffers.size());
    buffers = many.data();
  }
  for (std::size_t i = 0; i < kernel.buffers.size(); ++i) buffers[i] = call.address(kernel.buffers[i]);
  IndexFault fault;
  const double work = kernel.work * static_cast<double>(std::max<std::int64_t>(1, value_of(kernel.points, call.symbols)));
  const std::size_t count = kernel.buffers.size() / kernel.runs;
  auto run_some = [&](std::int64_t run, std::int64_t first, std::int64_t last) {
    call_units(kernel, {buffers + static_cast<std::size_t>(run) * count, count}, call.symbols, first, last, fault);
  };
  auto part = [&](std::int64_t first, std::int64_t last) {
    if (kernel.runs == 1) return run_some(0, first, last);
    while (first < last) {
      const std::int64_t run = first / units, end = std::min(last, (run + 1) * units);
      run_some(run, first - run * units, end - run * units);
      first = end;
    }
  };
  const std::int64_t all = units * static_cast<std::int64_t>(kernel.runs);
  if (all == 1 || work * static_cast<double>(all) < kSerialWork) {
    part(0, all);
  } else {
    host.parallel_for(0, all, std::max<std::int64_t>(1, static_cast<std::int64_t>(kGrainWork / work)), part);
  }
  check(fault);
}

}  // namespace tenon::llvm_backend
