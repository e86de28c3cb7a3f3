// How a view was made from what it views, as nodes of the graph: to make it again from a new value, and to carry a write back through it.
#pragma once

#include <optional>
#include <vector>

#include "core/ops/build/node_builder.h"

namespace tenon::ops {

/// A node on the way from a tensor to a view of it, and which of its results goes on.
struct ViewStep {
  ir::NodeId node;
  std::uint32_t result = 0;
};
using ViewPath = std::vector<ViewStep>;

/// The nodes that lead from one value to another, each with one operand; nothing where there is no such way.
std::optional<ViewPath> find_view_path(const ir::Graph& graph, ir::ValueId from, ir::ValueId to);

/// What the step gives for another value of the same type.
ir::ValueId replayed(ops::NodeBuilder& builder, const ViewStep& step, ir::ValueId value);

/// `viewed` after `part`, of the type of the step's result, has replaced what the step shows of it; nothing where the step shows an element
/// more than once.
std::optional<ir::ValueId> scattered(ops::NodeBuilder& builder, const ViewStep& step, ir::ValueId viewed, ir::ValueId part);

}  // namespace tenon::ops
