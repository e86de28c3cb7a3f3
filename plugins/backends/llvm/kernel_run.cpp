#include "kernel_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace tenon::llvm_backend {

namespace {

/// The least work that a thread takes at once.
constexpr double kGrainWork = 32 * 1024;

}  // namespace

CompiledKernel compiled(const codegen::Kernel& kernel, codegen::KernelFunction function, std::vector<Place> places) {
  return {function, codegen::unit_count(kernel), codegen::points_per_unit(kernel), std::max(1.0, codegen::work_per_point(kernel) / 4), std::move(places), kernel.scatter};
}

void check(const codegen::IndexFault& fault) {
  if (!fault.raised) return;
  throw Failure(TENON_INVALID_ARGUMENT, fmt::format("index {} is out of bounds for dimension {} with size {}", fault.index, fault.dimension, fault.size));
}

void run(const HostServices& host, const CompiledKernel& kernel, const Call& call) {
  const std::int64_t units = kernel.units.evaluate(call.symbols);
  if (units <= 0) return;
  std::array<void*, 32> few;
  std::vector<void*> many;
  void** buffers = few.data();
  if (kernel.buffers.size() > few.size()) {
    many.resize(kernel.buffers.size());
    buffers = many.data();
  }
  for (std::size_t i = 0; i < kernel.buffers.size(); ++i) buffers[i] = call.address(kernel.buffers[i]);
  codegen::IndexFault fault;
  const double work = kernel.work * static_cast<double>(std::max<std::int64_t>(1, kernel.points.evaluate(call.symbols)));
  if (kernel.ordered || units == 1 || work * static_cast<double>(units) < kSerialWork) {
    kernel.function(buffers, call.args.symbols, 0, units, &fault);
  } else {
    const auto grain = std::max<std::int64_t>(1, static_cast<std::int64_t>(kGrainWork / work));
    host.parallel_for(0, units, grain, [&](std::int64_t first, std::int64_t last) { kernel.function(buffers, call.args.symbols, first, last, &fault); });
  }
  check(fault);
}

}  // namespace tenon::llvm_backend
