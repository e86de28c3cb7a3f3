#include "run/early_steps.h"

#include <algorithm>
#include <utility>

#include "core/ir/outputs.h"
#include "schedule/product_tile.h"

namespace tenon::cuda {

using codegen::KernelStep;
using codegen::Plan;
using codegen::Step;

namespace {

bool is_product(const Step& step) {
  const auto* kernel = std::get_if<KernelStep>(&step);
  return kernel && dynamic_cast<const Multiplied*>(kernel->kernel.schedule.get());
}

/// Reads inputs alone, and writes nothing that a caller gets: that may lie on an input which somebody before reads.
bool needs_inputs_alone(const Step& step, const ir::Graph& graph, const std::vector<bool>& outputs) {
  const auto* kernel = std::get_if<KernelStep>(&step);
  if (!kernel || is_product(step) || kernel->kernel.scatter) return false;
  const auto needs_inputs = [&](const std::vector<ir::ValueId>& run) {
    for (std::size_t b = 0; b < run.size(); ++b) {
      if (kernel->kernel.buffers[b].row) continue;
      if (codegen::is_local(run[b]) || run[b].value >= graph.value_capacity()) return false;
      const bool is_input = graph.value(run[b]).kind == ir::ValueKind::input;
      if (kernel->kernel.buffers[b].written ? is_input || outputs[run[b].value] : !is_input) return false;
    }
    return true;
  };
  return needs_inputs(kernel->buffers) && std::ranges::all_of(kernel->others, needs_inputs);
}

}  // namespace

void start_early(Plan& plan, const ir::Graph& graph) {
  const std::vector<bool> outputs = ir::output_values(graph);
  for (std::size_t i = 1; i < plan.steps.size(); ++i) {
    if (!needs_inputs_alone(plan.steps[i], graph, outputs)) continue;
    std::size_t to = i;
    while (to > 0 && !is_product(plan.steps[to - 1])) --to;
    if (to == 0) continue;
    const auto first = plan.steps.begin();
    std::rotate(first + static_cast<std::ptrdiff_t>(to) - 1, first + static_cast<std::ptrdiff_t>(i), first + static_cast<std::ptrdiff_t>(i) + 1);
  }
}

}  // namespace tenon::cuda
