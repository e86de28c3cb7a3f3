// Values that are known before the program runs: constants as tensors, and nodes computed from them.
#pragma once

#include <optional>
#include <vector>

#include "core/ir/graph.h"
#include "core/ops/reference/reference.h"

namespace tenon::rewrite {

/// The constant that a value reads, when a `constant` node defines it and its bytes are at hand, in the host's memory; else null.
const ir::Constant* constant_of(const ir::Graph& graph, ValueId value);

/// Element i of a row-major constant in float32 or float64.
double element_of(const ir::Constant& constant, std::size_t i);

/// The results of a node whose tensor operands are all constants of static shape, at least one of them: computed with the reference
/// kernels. Nothing when it is not such a node, when it is not pure, when it would raise, or when a result is on another
/// device than the host or has more than `most_bytes`.
std::optional<std::vector<ops::HostTensor>> evaluate_node(const ir::Graph& graph, NodeId node, std::size_t most_bytes);

/// Adds a constant that owns the tensor's bytes, and a node that reads it in front of `before`. The type must be the tensor's.
ValueId add_constant_node(ir::Graph& graph, NodeId before, const ir::Type& type, ops::HostTensor tensor);

}  // namespace tenon::rewrite
