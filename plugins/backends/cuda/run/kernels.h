// A graph as kernels that have code for this target, or why it has none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/ir/graph.h"
#include "fusion/plan.h"
#include "graph/refusal.h"
#include "products/product_steps.h"
#include "schedule/schedule.h"

namespace tenon::cuda {

/// A plan of kernels alone, with a schedule for each.
struct ScheduledPlan {
  codegen::Plan plan;
  std::vector<Schedule> schedules;
  std::vector<std::string> names;  // for people: what each kernel computes

  const codegen::KernelStep& step(std::size_t i) const { return std::get<codegen::KernelStep>(plan.steps[i]); }
};

/// Takes composites apart, and makes every output the result of a node of its own.
void prepare(ir::Graph& graph);

/// What a plan is made for.
struct PlanChoices {
  bool fuse = true;
  bool has_tensor_cores = false;  // from sm_80 on
  bool has_clusters = false;      // blocks that read each other's memory: from sm_90 on
  bool has_warpgroups = false;    // four warps that multiply together: sm_90a alone has the instructions
  Rounding rounding{};
};

/// What cards of the architecture have.
PlanChoices choices_for(const std::string& architecture);

/// Plans a graph that was prepared. Fails (unsupported) where a step has no code.
Result<ScheduledPlan> scheduled_plan(const ir::Graph& graph, const PlanChoices& choices);

/// The same, with a kernel a node where steps of more have no code.
Result<ScheduledPlan> plan_with_code(const ir::Graph& graph, PlanChoices choices);

/// Why the node is not taken by itself: it has no code (`op`), or loops are a slow way to it (`cost`). Nothing where it is taken: only such nodes
/// go into a graph together.
std::optional<codegen::Refusal> refuse_code(const ir::Graph& graph, const ir::Node& node, PlanChoices choices);

/// All that a kernel's code depends on, beside the architecture and its function's name.
std::string text_of(const ScheduledPlan& plan, std::size_t kernel);
/// The name of a kernel's function: what it computes, and the hash of its text. Kernels of the same text that compute the same have the same name, wherever they are met.
std::string function_of(const ScheduledPlan& plan, std::size_t kernel, const std::string& text);

/// A kernel of a plan under a name.
std::string ptx_of(const ScheduledPlan& plan, std::size_t kernel, const std::string& name, const std::string& architecture);

/// Whether kernels for the architecture wait themselves for those before them, so that they may be started early.
bool kernels_wait(const std::string& architecture);

/// The same plan for buffers that start at multiples of their elements alone.
ScheduledPlan for_any_start(const ScheduledPlan& plan);

}  // namespace tenon::cuda
