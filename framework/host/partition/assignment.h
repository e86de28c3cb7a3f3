// Asks the backends in order, each on what the ones before have left.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "host/partition/claims.h"
#include "host/partition/partition.h"

namespace tenon::host {

/// Which backend and which of its groups a node went to.
struct Assignment {
  static constexpr std::uint32_t kNobody = 0xffffffffu;
  static constexpr std::uint32_t kHost = 0xfffffffeu;  // in the place of a backend
  static constexpr std::uint32_t kCopy = 0xfffffffdu;  // likewise: the host copies to another device
  std::vector<std::uint32_t> group_of;      // by NodeId; kNobody for free nodes and readers of constants
  std::vector<std::uint32_t> backend_of;    // by group
  std::vector<std::vector<NodeId>> constants_of;  // by group: the readers of constants that its backend claims with it, sorted
  /// By NodeId: what each backend said about a node that it did not take, as "name: reason, text".
  std::map<NodeId, std::vector<std::string>> refusals;
  std::map<NodeId, std::uint32_t> at_a_price;  // by node: the first backend that has code for it, and refused because that is slow

  bool taken(NodeId n) const { return group_of[n.value] != kNobody; }
};

/// Asks backends [first, last) of the request for the nodes that are free in `assignment` and on devices that they serve; a node elsewhere
/// counts as refused for its device. With `again`, those that want to be asked
/// only once are left out.
void ask_backends(Assignment& assignment, const ir::Graph& graph, const PartitionRequest& request, std::size_t first, std::size_t last, bool again);

/// Nobody has anything yet.
Assignment unassigned(const ir::Graph& graph);

}  // namespace tenon::host
