// What several nodes compute alike is computed once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/ir/graph.h"

namespace tenon::rewrite {

/// Which nodes of a graph give the gradients of which.
class GradientNodes {
 public:
  explicit GradientNodes(const ir::Graph& graph) : known_(graph.nodes().size()) {}
  /// Those that were appended since the last call are of that node.
  void note(const ir::Graph& graph, ir::NodeId of) {
    for (; known_ < graph.nodes().size(); ++known_) of_[graph.nodes()[known_].value] = of.value;
  }
  bool is_gradient(ir::NodeId node, ir::NodeId of) const {
    const auto found = of_.find(node.value);
    return found != of_.end() && found->second == of.value;
  }

 private:
  std::size_t known_;
  std::unordered_map<std::uint32_t, std::uint32_t> of_;
};

/// Whether torch's gradient of a node computes again what the node has given: a quotient.
bool is_computed_anew(const ir::Node& node);

/// A node whose results are read in place of those of another.
struct SharedNode {
  ir::NodeId unread, read;
};

/// What is computed twice by gradients, or by them and the forward, is computed once: gradients of functions are written in what these compute. The
/// first `forward` nodes stay as they are; `gradients` are values of the graph. Gives where these are read in place of others.
std::vector<SharedNode> share_nodes(ir::Graph& graph, std::size_t forward, std::span<std::optional<ir::ValueId>> gradients);

}  // namespace tenon::rewrite
