// Concatenations without copies: what is joined is written where it lies in the whole.
#pragma once

#include <vector>

#include "core/ir/graph.h"

namespace tenon::codegen {

/// A concatenation that others begin: [a], [a, b], [a, b, c] as a dense block makes them. All lie in the memory of the longest one.
struct Concatenation {
  struct Part {
    ValueId value;
    ir::Dim offset;  // of its first element in the whole, in elements
  };
  ValueId whole;
  std::vector<Part> parts;
  std::vector<ValueId> beginnings;  // the concatenations of the first parts; the whole is one of them
};

/// The dimension along which a `cat` joins.
std::size_t joined_dim(const ir::Graph& graph, const ir::Node& node);

/// Finds them and gives their values the strides of the whole. Only what `choose_layouts` has laid out takes part: no output of the graph,
/// nothing that a library call or a scatter reads or gives.
std::vector<Concatenation> join_concatenations(ir::Graph& graph);

}  // namespace tenon::codegen
