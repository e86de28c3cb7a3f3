// Writes to small parts of a tensor, one after the other: each runs over its part alone, in the memory of the tensor before it.
#pragma once

#include <optional>
#include <vector>

#include "core/ir/graph.h"
#include "core/ops/op.h"
#include "machine/machine.h"

namespace tenon::codegen {

/// The node gives `base` with the elements of `source` in a part of it.
struct PartWrite {
  ValueId base, source;
  std::vector<ops::ShownDim> part;  // by dimension of `base`; those kept are the dimensions of `source`, in order
  std::vector<NodeId> nodes;        // that are this write alone: of a view of a view those of the views, too
};

/// By NodeId: the writes of which so many follow each other that running over their parts costs less than choosing for each element of
/// the whole, and those from an input to an output that nobody else reads, which mostly is that input's new value and then need not touch
/// the rest. Writes to a view of a view are one write.
std::vector<std::optional<PartWrite>> part_writes(const ir::Graph& graph, const IndexAlgebra& algebra, const Machine& machine);

}  // namespace tenon::codegen
