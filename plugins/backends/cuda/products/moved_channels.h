// Pictures and weights of four dimensions whose channels a permutation moves to the end, and back.
#pragma once

#include <vector>

#include "core/ir/graph.h"
#include "core/ops/build/node_builder.h"

namespace tenon::cuda {

inline const std::vector<ir::Dim> kChannelsToEnd{ir::Dim(0), ir::Dim(2), ir::Dim(3), ir::Dim(1)}, kChannelsBack{ir::Dim(0), ir::Dim(3), ir::Dim(1), ir::Dim(2)};

/// Whether the node is the permutation by `dims`, one of these.
bool moves_channels(const ir::Graph& graph, const ir::Node& node, const std::vector<ir::Dim>& dims);
/// The value by way of one whose channels are last.
ir::ValueId moved_and_back(ops::NodeBuilder& build, ir::ValueId value);
/// All uses of a value, of which `first_reader` is the first, read it by way of one whose channels are last.
void lay_channels_last(ir::Graph& graph, ir::ValueId value, ir::NodeId first_reader);

}  // namespace tenon::cuda
