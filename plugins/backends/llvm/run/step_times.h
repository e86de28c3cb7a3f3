// What TENON_LOGS=kernel_times says of a step: time, and the bytes and operations that it needs at least.
#pragma once

#include <span>
#include <string>

#include "core/ir/graph.h"
#include "fusion/plan.h"

namespace tenon::llvm_backend {

/// One line of JSON: {"step", "kind", "what", "us", "bytes", "flops"}. Bytes are those of every value that the step reads or writes,
/// counted once; flops are two a multiplication of a product, and of other kernels a rough count of scalar operations.
std::string step_line(const ir::Graph& graph, const codegen::Plan& plan, std::size_t step, std::span<const std::int64_t> symbols, double microseconds);

}  // namespace tenon::llvm_backend
