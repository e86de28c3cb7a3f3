// A node of the catalogue as a call of another library's function: the way back from `call_foreign`.
#pragma once

#include <optional>
#include <string_view>

#include "core/ops/foreign/foreign_call.h"

namespace tenon::ops {

/// The call of a function whose name begins with `library` ("torch.") that means a node: one of the op's aliases, with the node's operands (values
/// of `graph`) and attributes as arguments. Only one that the catalogue turns into this very node is taken. Methods (torch.Tensor.…), which get
/// the tensor as their first argument, come last. Nothing where there is none.
std::optional<ForeignCall> node_as_call(const ir::Graph& graph, ir::NodeId node, std::string_view library);

}  // namespace tenon::ops
