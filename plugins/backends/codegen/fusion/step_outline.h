// What the log "steps" says of a plan: lines of JSON.
#pragma once

#include <cstddef>
#include <string>

#include "core/ir/graph.h"
#include "fusion/plan.h"

namespace tenon::codegen {

/// The number of a program whose steps are said: another one each time.
std::size_t next_program_number();

/// Of a step: {"program", "step", "kind", "name", "nodes": [{"op", "written", "name", "type", "file", "line", "function", "code"}], "loops", "kernel"}. `nodes` are
/// those that it computes, those fused into it too, which are not written to memory. `loops` is the kernel as text; of a product, of what follows it. `kernel` names the function of its code; left out where it is empty.
std::string step_outline(const ir::Graph& graph, const Plan& plan, std::size_t program, std::size_t step, const std::string& kernel = {});

/// The bytes of a plan's own values that are alive at each step, as one line: {"program", "alive"}. Sizes that vary count as some.
std::string memory_line(const ir::Graph& graph, const Plan& plan, std::size_t program);

}  // namespace tenon::codegen
