// The kernels of a graph, scheduled for the GPU.
#pragma once

#include <string>
#include <vector>

#include "core/ir/graph.h"
#include "fusion/plan.h"
#include "products/product_steps.h"
#include "schedule/schedule.h"

namespace tenon::ptx_test {

struct ScheduledKernel {
  codegen::KernelStep step;
  cuda::Schedule schedule;
};

struct ScheduledGraph {
  ir::Graph graph;  // with composites taken apart
  codegen::Plan plan;
  std::vector<ScheduledKernel> kernels;  // in the order in which they run
};

/// Throws why, where a step has no code for the target.
ScheduledGraph schedule_graph(ir::Graph graph, bool has_tensor_cores = true, const cuda::ProductChoices& choices = {});

/// Their PTX, as kernel0, kernel1, …
std::string ptx_of(const ScheduledGraph& scheduled, const std::string& architecture);

}  // namespace tenon::ptx_test
