// A generated kernel as a call runs it.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "call.h"
#include "vectors/kernel_emitter.h"
#include "tenon/host_services.h"

namespace tenon::llvm_backend {

/// Cheap element-operations below which one thread is faster than two.
inline constexpr double kSerialWork = 64 * 1024;

/// Where the code of a kernel is now: better code of the same results may take its place at any time.
struct KernelCode {
  std::atomic<KernelFunction> function{nullptr};  // null until it is compiled
  std::vector<std::shared_ptr<const void>> memory;         // of its code so far: calls may still run what was exchanged
};

struct CompiledKernel {
  std::shared_ptr<const KernelCode> code;
  ir::Dim units, points;
  double work = 1;
  std::size_t runs = 1;  // over other buffers, in one launch
  std::vector<Place> buffers;  // run by run
  std::vector<std::int64_t> sizes;  // what its code takes for symbols; empty: those of the call
  std::vector<ir::Dim> rows;  // bytes of each buffer that is a row of the thread's own
};

/// True for a kernel of constant sizes that one thread runs.
bool is_small(const codegen::Kernel& kernel);

/// Gives the code with what it takes; buffers of all `runs` are at `places`.
CompiledKernel compiled(const codegen::Kernel& kernel, std::shared_ptr<const KernelCode> code, std::vector<Place> places, std::size_t runs = 1);

/// Runs all units, on several threads where that pays.
void run(const HostServices& host, const CompiledKernel& kernel, const Call& call);

/// Runs all units on this thread, with other symbols and buffers than those of the call.
void run_part(const CompiledKernel& kernel, std::span<void* const> buffers, std::span<const std::int64_t> symbols);

/// The same for the units [first, last).
void run_units(const CompiledKernel& kernel, std::span<void* const> buffers, std::span<const std::int64_t> symbols, std::int64_t first, std::int64_t last);

/// Fails the call when a kernel met an index out of range.
void check(const IndexFault& fault);

}  // namespace tenon::llvm_backend
