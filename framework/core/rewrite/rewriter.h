// Changes a graph node by node while keeping track of who reads what: what every rewriting pass stands on.
#pragma once

#include <string_view>
#include <vector>

#include "core/ir/graph.h"
#include "core/ops/build/node_builder.h"

namespace tenon::rewrite {

/// Edits one graph (not its regions). New nodes are made with `before`; `replace` moves readers over. Nodes that nothing reads any more
/// stay until `finish`, so ids stay good in between. Names of values and locations of nodes survive: a node that replaces another
/// takes over both.
class Rewriter {
 public:
  explicit Rewriter(ir::Graph& graph);

  ir::Graph& graph() { return graph_; }
  const ir::Graph& graph() const { return graph_; }

  /// The node that defines a value; null for inputs and literals.
  const ir::Node* definition(ValueId value) const;
  /// The nodes that read a value; one occurs once for each operand position.
  const std::vector<NodeId>& users(ValueId value);
  /// True when an output of the graph reads the value.
  bool is_output(ValueId value) const;
  bool is_erased(NodeId node) const { return node.value < erased_.size() && erased_[node.value]; }

  /// Builds nodes in front of `node`, with its location.
  ops::NodeBuilder before(NodeId node);

  /// True when `to` can stand for `from` wherever it is read: equal types, or types that differ in the layout only of a value that no
  /// output reads.
  bool can_replace(ValueId from, ValueId to) const;
  /// Makes all readers of `from` read `to`. A `to` that was made since the last edit takes over the name.
  void replace(ValueId from, ValueId to);
  /// Marks a node whose results nothing reads as removed.
  void erase(NodeId node);

  /// Says of a node that may raise that it never does, of what it is given: it goes when nothing reads it.
  void never_raises(NodeId node);

  /// Removes the nodes that are erased, or that lost their last reader through an edit and may be removed: not those that may raise, unless
  /// another has replaced them. Gives how many readers and
  /// nodes were changed since the Rewriter was made: 0 means that the graph is as it was.
  std::size_t finish();

 private:
  void learn_new_nodes();
  void drop_if_dead(NodeId node);

  ir::Graph& graph_;
  std::vector<std::vector<NodeId>> users_;
  std::vector<bool> erased_;
  std::vector<bool> wanted_;     // older than the rewriting, or used by it: its failure is part of what the program does
  std::vector<bool> replaced_;   // another node does its work, and fails in its place; or it never fails
  std::vector<NodeId> orphans_;  // lost a reader
  std::size_t known_nodes_ = 0;  // nodes made since have larger ids
  std::size_t edits_ = 0;
};

/// True when a node may go once nothing reads it, and equal ones may become one: it is not random, opaque, or control, in itself or in
/// its regions.
bool is_pure(const ir::Graph& graph, const ir::Node& node);
/// True when a pure node can fail at run time (an index out of range): the failure is part of what the program does.
bool may_raise(const ir::Node& node);

/// Calls `visit` for the graph and, before it, for each region of its nodes, at any depth.
template <class Visit>
void for_each_graph(ir::Graph& graph, Visit&& visit) {
  for (NodeId id : std::vector<NodeId>(graph.nodes().begin(), graph.nodes().end()))
    for (RegionId region : graph.node(id).regions) for_each_graph(graph.mutable_region(region), visit);
  visit(graph);
}

}  // namespace tenon::rewrite
