// Checks the types of a graph by the catalogue: what whoever reads a graph from elsewhere may then rely on.
#pragma once

#include <optional>
#include <vector>

#include "core/base/error.h"
#include "core/ir/verifier.h"

namespace tenon::ops {

struct TypeReport {
  /// What is wrong, in the order of the graph; empty for a good one.
  std::vector<ir::Violation> violations;
  /// What the ranges of the symbols leave open, and must hold of each call's sizes: that these are at least 0.
  std::vector<ir::Dim> not_negative;
};

/// Whose meanings are made to be asked: of ops whose inference does not say that it takes nothing else (Traits::is_inferred_whole), or of all.
enum class AskedMeanings : std::uint8_t { where_inference_leaves_some, all };

/// Checks the types of a graph that ir::find_violations accepts. Stops after `limit` violations. The rules stand at the top of
/// type_checker.cpp. Nodes of ops that the catalogue does not have are whoever's who runs them.
TypeReport check_types(const ir::Graph& graph, std::size_t limit = 20, AskedMeanings asked = AskedMeanings::where_inference_leaves_some);

/// Checks all of a graph, its structure first: types are looked at where that is sound.
TypeReport check_graph(const ir::Graph& graph, std::size_t limit = 20);

/// The same for a graph at the border: gives what must hold of each call's sizes, or says as one error (malformed) what is wrong, naming
/// node and user location.
Result<std::vector<ir::Dim>> accept_graph(const ir::Graph& graph);

}  // namespace tenon::ops
