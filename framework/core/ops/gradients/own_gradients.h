// The op `own_gradient`: values of which the graph itself says how gradients flow through them.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/ops/build/node_builder.h"

namespace tenon::ops {

/// What its operands are. Gradients are nodes in front of it, made from a `tangent` of each result and from what else there is; both they and the
/// results are behind `detach`, so that nothing flows through them.
struct OwnGradientParts {
  std::span<const ir::ValueId> results;    // what it gives
  std::span<const ir::ValueId> inputs;     // what is handed gradients
  std::span<const ir::ValueId> kept;       // behind `detach`: inputs of the graph that torch keeps for the gradients
  std::span<const ir::ValueId> read;       // behind `detach`: what gradients are made from and is no part of them
  std::span<const ir::ValueId> tangents;   // by result
  std::span<const ir::ValueId> gradients;  // by input, behind `detach`
  bool again = false;                      // these can be differentiated
  bool once = false;                       // or torch refuses to
  enum class Absent : std::uint8_t { zeros, none, left_out, unknown };
  Absent absent = Absent::unknown;         // what they are where none of the results has a gradient: made from zeros, or none. left_out: none, and where
                                           // only some have one, the tangents of the others are empty vectors

  /// Nothing where there are not as many operands as the attributes say.
  static std::optional<OwnGradientParts> of(std::span<const ir::ValueId> operands, const ir::Attributes& attributes);
  static OwnGradientParts of(const ir::Node& node);
};

inline bool is_own_gradient(const ir::Node& node) { return node.op == "own_gradient"; }

/// Whether a node is a call that computes gradients, of a library that alone knows them: no part of what these are gradients of, and linear in tangents.
inline bool is_gradient_call(const ir::Node& node) {
  const ir::Attribute* linear = node.attribute("linear");
  return linear && std::get<bool>(*linear);
}

/// Appends the gradients of the inputs by those of the results, which may be no value: one an operand of the node, no value for operands that have none.
/// `again`: gradients that can be differentiated, or that say that they cannot (differentiated_once.h). Throws (unsupported) where they are not linear.
std::vector<ir::ValueId> own_gradients(NodeBuilder& builder, const OwnGradientParts& parts, std::span<const ir::ValueId> results,
                                       std::span<const ir::ValueId> given, bool again);

/// The inputs of the graph that torch keeps for such nodes among some, whatever is read of them. Not those over which the graph writes itself.
std::vector<std::uint32_t> kept_for_own_gradients(const ir::Graph& graph, std::span<const ir::NodeId> nodes);

/// What a value is where gradients do not matter: an operand where it is a result of such a node.
ir::ValueId without_own_gradient(const ir::Graph& graph, ir::ValueId value);

/// Has all that reads results of such nodes read what they are, and removes the nodes and what only they need. `read`: values that are wanted,
/// none of which such a node gives. Gives how many were removed.
std::size_t drop_own_gradients(ir::Graph& graph, std::span<const ir::ValueId> read = {});

}  // namespace tenon::ops
