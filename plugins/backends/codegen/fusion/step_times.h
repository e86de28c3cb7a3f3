// What the log "kernel_times" says of a program's steps that have run: lines of JSON.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/ir/graph.h"
#include "fusion/plan.h"

namespace tenon::codegen {

/// Of a step that has run: {"program", "step", "kind", "name", "us", "bytes", "flops"}. Bytes are those of every value that the step reads or writes,
/// counted once; flops are two a multiplication of a product, and of other kernels a rough count of scalar operations.
std::string step_line(const ir::Graph& graph, const Plan& plan, std::size_t program, std::size_t step, std::span<const std::int64_t> symbols, double microseconds);

}  // namespace tenon::codegen
