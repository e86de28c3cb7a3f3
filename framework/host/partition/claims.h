// Asks a backend which nodes it wants, and checks the answer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/ir/graph.h"
#include "host/diagnostics/events.h"
#include "host/plugins/contact/crossing.h"
#include "host/plugins/registry/backend_instance.h"

namespace tenon::host {

/// Why a backend does not want a node.
struct RefusedNode {
  NodeId node;
  std::string reason;
  std::string text;
};

/// A group that a backend wants.
struct ClaimedGroup {
  std::vector<NodeId> nodes;      // that compute
  std::vector<NodeId> constants;  // readers of constants that shall stay in the group
};

/// A backend's answer, cleaned: known nodes, each that computes in one group at most, no groups that compute nothing.
struct ClaimAnswer {
  std::vector<ClaimedGroup> groups;
  std::vector<RefusedNode> refusals;
};

/// Asks. What is wrong with the answer (ids that the graph does not have, nodes claimed twice, a failure) is an event that names the
/// backend, and is dropped; a call that fails counts as claiming nothing.
ClaimAnswer ask_claims(BackendInstance& backend, const ir::Graph& graph, ConstantStore& constants, Events& events, const std::string& options);

}  // namespace tenon::host
