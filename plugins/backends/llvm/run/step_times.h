// What the logs "steps" and "kernel_times" say of a program's steps: lines of JSON.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/ir/graph.h"
#include "fusion/plan.h"

namespace tenon::llvm_backend {

/// Of a step, when the program is compiled: {"program", "step", "kind", "nodes": [{"op", "name", "type", "file", "line", "function", "code"}], "loops"}. `loops` is
/// the kernel as text, as it stands before its code in the log "kernel_code"; of a product, of what follows it.
std::string step_outline(const ir::Graph& graph, const codegen::Plan& plan, std::size_t program, std::size_t step);

/// The bytes of a plan's own values that are alive at each step, as one line: {"program", "alive"}. Sizes that vary count as some.
std::string memory_line(const ir::Graph& graph, const codegen::Plan& plan, std::size_t program);

/// Of a step that has run: {"program", "step", "kind", "what", "us", "bytes", "flops"}. Bytes are those of every value that the step reads or writes,
/// counted once; flops are two a multiplication of a product, and of other kernels a rough count of scalar operations.
std::string step_line(const ir::Graph& graph, const codegen::Plan& plan, std::size_t program, std::size_t step, std::span<const std::int64_t> symbols, double microseconds);

}  // namespace tenon::llvm_backend
