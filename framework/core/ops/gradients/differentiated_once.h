// Gradients that torch does not differentiate again: the op `no_gradient` holds them, and what torch says where one is asked for.
#pragma once

#include <string>
#include <vector>

#include "core/ops/build/node_builder.h"

namespace tenon::ops {

/// The value, without a gradient. `by`: what torch has it depend on, besides what it is computed from. `ends`: in torch's graph nothing lies behind it,
/// so that only a walk to all leaves comes to the refusal.
ir::ValueId without_gradient(NodeBuilder& builder, ir::ValueId value, std::vector<ir::ValueId> by, std::string message, bool ends = false);

/// A value that has no gradient, and what torch says where one is asked for.
struct Refused {
  ir::ValueId value;
  std::string message;
  bool ends = false;
};
std::vector<Refused> refused_gradients(const ir::Graph& graph);

/// What a value is where nobody asks for its gradient: an operand where it is one of those.
ir::ValueId without_refusal(const ir::Graph& graph, ir::ValueId value);

/// Has all that reads such values, among the nodes from the given number on, read what they are, and removes their nodes.
void drop_refusals(ir::Graph& graph, std::size_t first_node = 0);

}  // namespace tenon::ops
