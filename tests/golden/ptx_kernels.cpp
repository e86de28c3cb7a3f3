#include "ptx_kernels.h"

#include <fmt/format.h>

#include <algorithm>

#include "compile/ptx.h"
#include "core/base/error.h"
#include "graph/decomposition.h"
#include "graph/planning.h"
#include "products/ends_of_products.h"
#include "products/laid_products.h"
#include "products/product_emitter.h"
#include "products/product_steps.h"
#include "schedule/gpu_machine.h"

namespace tenon::ptx_test {

ScheduledGraph schedule_graph(ir::Graph graph, bool has_tensor_cores, const cuda::ProductChoices& choices) {
  codegen::decompose_composites(graph, true);
  cuda::lay_products(graph);
  cuda::move_ends_of_products(graph);
  const cuda::GpuMachine machine(has_tensor_cores);
  codegen::PlanOptions options;
  if (has_tensor_cores) options.stored = cuda::written_for_products(graph);
  codegen::Plan plan = codegen::plan_graph(graph, machine, options);
  cuda::make_kernels_of_products(plan, graph, machine, choices);
  std::vector<ScheduledKernel> kernels;
  for (const codegen::Step& step : plan.steps) {
    const auto* kernel = std::get_if<codegen::KernelStep>(&step);
    if (!kernel) throw Exception(error(Code::unsupported, "a step is no kernel"));
    cuda::Schedule schedule = cuda::schedule(kernel->kernel, cuda::starts_of_all_runs(kernel->starts, kernel->buffers.size())).value();
    schedule.runs = cuda::runs_at_once(kernel->kernel, schedule, kernel->others.size() + 1);
    kernels.push_back({*kernel, std::move(schedule)});
  }
  return {std::move(graph), std::move(plan), std::move(kernels)};
}

std::string ptx_of(const ScheduledGraph& scheduled, const std::string& architecture) {
  const cuda::PtxIsa isa = cuda::PtxIsa::of(architecture);
  const bool multiplies = std::ranges::any_of(scheduled.kernels, [](const ScheduledKernel& kernel) { return kernel.schedule.product.has_value(); });
  std::string code = cuda::to_ptx(architecture, [&](llvm::Module& module) {
    for (std::size_t i = 0; i < scheduled.kernels.size(); ++i)
      cuda::emit_kernel(module, scheduled.kernels[i].step.kernel, scheduled.kernels[i].schedule, isa, fmt::format("kernel{}", i));
  }, multiplies);
  for (std::size_t i = 0; i < scheduled.kernels.size(); ++i)
    if (const auto& product = scheduled.kernels[i].schedule.product) code = cuda::with_clusters(std::move(code), fmt::format("kernel{}", i), product->cluster);
  return code;
}

}  // namespace tenon::ptx_test
