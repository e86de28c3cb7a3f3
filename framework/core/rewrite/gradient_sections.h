// The parts of a graph that have gradients of their own, and the values at which one part hands gradients to another.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/ir/graph.h"
#include "core/rewrite/differentiate.h"

namespace tenon::rewrite {

/// A value that the caller makes as a view of another result, or of an input: what is computed from it has its gradient there.
struct ViewedResult {
  ir::ValueId value;
  std::optional<ir::ValueId> of;  // none for an input
};

/// Nodes between some results and the values at which their gradients end.
struct GradientSection {
  std::vector<ir::ValueId> results;  // what is asked for, then what is handed to later sections
  std::vector<ir::ValueId> sources;  // values inside the graph: results of earlier sections, or views of such
};

/// Cuts a graph where torch's autograd graph can be seen: a result that depends on another one has its gradients end there. Results of one section do not
/// depend on each other; two are in one section where gradients of both flow through a node that keeps something: torch lets that go once. Earlier
/// sections come first. `results`: each once; `wanted`: where all gradients end.
std::vector<GradientSection> gradient_sections(const ir::Graph& graph, std::span<const ir::ValueId> results, std::span<const ir::ValueId> wanted,
                                               std::span<const ViewedResult> views = {});

/// Where gradients begin when none of the results has one: torch gives zeros to functions of the program's, and has its own hand nothing on. One result of
/// each such function. Throws (unsupported) where one asks for no zeros.
std::vector<ir::ValueId> given_zeros(const ir::Graph& graph, std::span<const ir::ValueId> results, std::span<const ir::ValueId> wanted);

/// Nothing flows through the nodes of these values.
Stops stops_at(const ir::Graph& graph, std::span<const ir::ValueId> values);

}  // namespace tenon::rewrite
