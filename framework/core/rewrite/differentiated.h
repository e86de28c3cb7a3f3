// A graph and the graph of its gradients, which reads what the first one keeps for it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/ir/graph.h"
#include "core/rewrite/kept_values.h"

namespace tenon::rewrite {

/// The graph of gradients of some outputs.
struct BackwardGraph {
  /// Inputs: those of the forward that it reads, then the outputs of the forward that it reads, then the gradient of each differentiated output.
  /// Outputs: gradients of inputs of the forward. It has the symbols of the forward, with the same ids.
  ir::Graph graph;
  std::vector<std::uint32_t> outputs;       // of the forward, which it differentiates
  std::vector<std::uint32_t> kept_inputs;   // by input of `graph`: the input of the forward
  std::vector<std::uint32_t> kept_outputs;  // by input of `graph` behind these: the output of the forward
  std::vector<std::optional<std::uint32_t>> gradients;  // by wanted input: which output of `graph` is its gradient; none where nothing reads it
};

struct DifferentiatedGraph {
  /// What was given, with composite ops on the way to a gradient expanded; behind its own outputs those that only a backward graph reads, of the kind
  /// `saved`.
  ir::Graph forward;
  /// Outputs that share nothing that is differentiated are in graphs of their own: each may be asked for its gradient once, as with torch.
  std::vector<BackwardGraph> backwards;
};

/// Differentiates the outputs with these numbers, which are floats and no updates, by the inputs with these numbers. What a backward graph needs of the
/// forward's values it reads, or computes again (kept_values.h). Throws (unsupported) where an op on the way has no gradient, or is a control op.
DifferentiatedGraph with_backwards(const ir::Graph& graph, std::span<const std::uint32_t> outputs, std::span<const std::uint32_t> wanted, const ChooseKept& choose = {});

/// The same for gradients of only some of its outputs, and only some of the wanted inputs, from what `whole` reads: its graph has the inputs of that of
/// `whole`, of which it does not read all. `given`: by output of `whole`; `asked`: by wanted input.
BackwardGraph part_of(const ir::Graph& forward, const BackwardGraph& whole, std::span<const std::uint32_t> wanted, const std::vector<bool>& given,
                      const std::vector<bool>& asked);

/// The gradients of a backward graph computed from the beginning, to be differentiated: inputs are those of `forward` and then the gradient of each of
/// `of.outputs`, outputs the gradients, and then, of the kind `saved`, what the backward graph reads of the forward's values. `given`: by output of `of`;
/// zeros where there is no gradient but for what is not given.
ir::Graph gradients_anew(const ir::Graph& forward, const BackwardGraph& of, std::span<const std::uint32_t> wanted, const std::vector<bool>& given = {});

/// The graph with `count` of its outputs given: their values are inputs behind its own, and what only they need is gone. Throws (unsupported) where
/// something random or foreign would be computed.
ir::Graph from_outputs(const ir::Graph& graph, std::size_t first, std::size_t count);

}  // namespace tenon::rewrite
