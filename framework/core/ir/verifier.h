// Checks that a graph is one: the invariants that every reader and pass relies on. They stand at the top of verifier.cpp.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/ir/graph.h"

namespace tenon::ir {

struct Violation {
  std::string text;       // names the node, value, or whatever breaks the invariant
  NodeId node;            // in the outermost graph: of the node itself, or of the one whose region holds the fault; may be none
  SharedLocation location;  // of the innermost node concerned
};

/// All violations, in the order of the graph; empty for a good one. Stops after `limit`.
std::vector<Violation> find_violations(const Graph& graph, std::size_t limit = 20);

/// Violations as one error (malformed) that names node and user location; nothing where there are none.
std::optional<Error> as_error(const Graph& graph, std::span<const Violation> violations);
/// The violations of a graph as one error.
std::optional<Error> verify_graph(const Graph& graph);

}  // namespace tenon::ir
