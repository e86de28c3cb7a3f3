// Cuts a group of nodes out of a graph, as a graph of its own.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "core/ir/graph.h"

namespace tenon::host {

/// A group as a graph of its own, and what its parts are in the parent.
struct GroupGraph {
  ir::Graph graph;
  std::vector<NodeId> nodes;      // by position among graph.nodes(); copied readers of constants included
  std::vector<ValueId> inputs;    // in the order of graph.inputs()
  std::vector<ValueId> outputs;   // in the order of graph.outputs()
  std::vector<SymbolId> symbols;  // by SymbolId of the group's graph
};

/// True for the structural node that reads a constant: it belongs to whoever reads it, and is copied into each group that keeps it.
bool reads_constant(const ir::Node& node);
/// The constant that such a node reads.
ConstantId constant_of(const ir::Node& node);

/// Cuts groups out of one graph, which must not change meanwhile.
class GroupCutter {
 public:
  explicit GroupCutter(const ir::Graph& parent);

  /// Cuts out `nodes`, which are in the order of the parent. The outputs are the values that something outside reads (a node, an
  /// output of the parent, a size that is known only when the value is). Inputs and outputs keep the layouts that their types state.
  /// Constants that the nodes read come with them where `keeps` holds for their reader; the others become inputs.
  using Keeps = std::function<bool(NodeId reader)>;
  GroupGraph cut(std::span<const NodeId> nodes, const Keeps& keeps = [](NodeId) { return true; });

 private:
  bool inside(NodeId n) const { return stamps_[n.value] == stamp_; }
  bool read_outside(ValueId v) const;

  const ir::Graph& parent_;
  std::vector<std::vector<NodeId>> users_;           // by ValueId
  std::vector<bool> is_output_;                      // by ValueId
  std::vector<std::vector<NodeId>> symbol_readers_;  // by ValueId of a result that defines symbols: the nodes that mention one
  std::vector<std::uint32_t> stamps_;                // by NodeId: equal to stamp_ for the nodes of the current group
  std::uint32_t stamp_ = 0;
};

/// A copy in which each symbol has the given value; a negative value leaves it symbolic. The order of nodes and values stays.
ir::Graph with_sizes(const ir::Graph& graph, std::span<const std::int64_t> symbols);

}  // namespace tenon::host
