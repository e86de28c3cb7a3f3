// Gradients as nodes of the graph that they belong to.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/ir/graph.h"
#include "core/ops/build/expand.h"

namespace tenon::rewrite {

/// A value and what is differentiated with respect to it: the gradient of a loss, of the value's shape and dtype.
struct Seed {
  ir::ValueId of, adjoint;
};

/// Whether nothing flows through a node: it was run where no gradients were recorded.
using Stops = std::function<bool(ir::NodeId)>;

/// The nodes through which gradients of values flow to what is wanted, the last first. Nothing flows through `detach`.
std::vector<ir::NodeId> nodes_between(const ir::Graph& graph, std::span<const ir::ValueId> values, std::span<const ir::ValueId> wanted, const Stops& stops = {});

/// By ValueId: the values that can have a gradient and are computed with some values by such, and these. Nothing is behind `detach`, nor
/// behind `but_by`.
std::vector<bool> depending_on(const ir::Graph& graph, std::span<const ir::ValueId> values, std::span<const ir::ValueId> but_by = {});

/// Whether the gradients of a node by those of its operands that may have one are computed from a value that it reads or gives. `may_have`: by
/// ValueId. Leaves the graph as it is, but for values that nobody reads.
bool gradient_reads(ir::Graph& graph, ir::NodeId node, ir::ValueId value, const std::vector<bool>& may_have);

/// Expands in place the composite ops among them that have no gradient of their own. `moved` is told which value took the place of which.
void expand_between(ir::Graph& graph, std::vector<ir::ValueId> values, std::vector<ir::ValueId> wanted, const Stops& stops = {}, const ops::Moved& moved = {});

/// Expands in place those of the nodes from the given number on, so that whatever they give can be differentiated. They are the last of the graph.
void expand_last(ir::Graph& graph, std::size_t first_node, const ops::Moved& moved);

/// Is told of a node that has handed gradients on, and whether these are computed from its operands or results: whether torch's node would have
/// saved any of them.
using Visited = std::function<void(ir::NodeId, bool reads)>;

/// Appends nodes that give the gradient of the sum of all seeds for each wanted value, or nothing where no seed depends on it. No node that
/// is there changes its value. Only nodes between a wanted value and a seed are looked at: composite ops among them that have no gradient of
/// their own are expanded in place, and `moved` is told which value took the place of which (`wanted` and `seeds` may name the old ones).
/// The gradients are nodes like any others: they can be differentiated again. A value that is read several times gets the sum in the order
/// in which torch's engine adds: last reader first.
/// `for_more`: they will be, and depend on what torch's do, if only with a gradient of zeros (ops::has_flat_gradient).
/// Throws (unsupported) where one of those nodes has no gradient, or hands complex numbers on; nodes may have been appended then.
std::vector<std::optional<ir::ValueId>> differentiate(ir::Graph& graph, std::span<const Seed> seeds, std::span<const ir::ValueId> wanted,
                                                      const Stops& stops = {}, const ops::Moved& moved = {}, const Visited& visited = {}, bool for_more = false);

}  // namespace tenon::rewrite
