// A graph and the graph of its gradients, which reads what the first one keeps for it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/ir/graph.h"
#include "core/rewrite/kept_values.h"

namespace tenon::rewrite {

/// The graph of gradients of some results.
struct BackwardGraph {
  /// What it differentiates: outputs of the forward, and values that other graphs of gradients hand their gradient to.
  struct Result {
    ir::ValueId value;
    std::optional<std::uint32_t> output;
  };
  /// Inputs: those of the forward that it reads, then the outputs of the forward that it reads, then the gradient of each result.
  /// Outputs: gradients of what is wanted of the forward. It has the symbols of the forward, with the same ids.
  ir::Graph graph;
  std::vector<Result> results;
  std::vector<std::uint32_t> kept_inputs;   // by input of `graph`: the input of the forward
  std::vector<std::uint32_t> kept_outputs;  // by input of `graph` behind these: the output of the forward
  std::vector<std::optional<std::uint32_t>> gradients;  // by wanted value: which output of `graph` is its gradient; none where nothing reads it
  bool reads_result = false;  // it has one result, with which gradients are computed: nodes of torch that keep their result do so
  bool asked_once = true;     // torch lets go of what some of its own nodes have saved: not of what functions of the program keep in their own way
};

/// Where gradients go from one graph to another inside the forward: at an output on which others depend, at a view of one, or at a value that both need
/// and nobody else has.
struct InnerValue {
  std::optional<std::uint32_t> output, view;  // of the forward; of the views that were given
};

struct DifferentiatedGraph {
  /// What was given, with composite ops on the way to a gradient expanded; behind its own outputs those that only a backward graph reads, of the kind
  /// `saved`.
  ir::Graph forward;
  std::vector<ir::ValueId> wanted;  // what was given, then the inner values
  std::vector<InnerValue> inner;
  /// Outputs that share nothing that is differentiated are in graphs of their own: each may be asked for its gradient once, as with torch. An output that
  /// depends on another one is in a later graph, and its gradients end there.
  std::vector<BackwardGraph> backwards;
};

/// A value that the caller makes as a view of an output, or of an input.
struct ViewOfResult {
  ir::ValueId value;
  std::optional<std::uint32_t> output;
};

/// Differentiates the outputs with these numbers, which are floats and no updates, by inputs, or by values inside: gradients end there. What a backward
/// graph needs of the forward's values it reads, or computes again (kept_values.h). Throws (unsupported) where an op on the way has no gradient, or is a control op.
DifferentiatedGraph with_backwards(const ir::Graph& graph, std::span<const std::uint32_t> outputs, std::span<const ir::ValueId> wanted, const Keeping& keeping = {},
                                   std::span<const ViewOfResult> views = {});

/// The same for gradients of only some of its results, and only some of what is wanted, from what `whole` reads: its graph has the inputs of that of
/// `whole`, of which it does not read all. `given`: by result of `whole`; `asked`: by wanted value.
BackwardGraph part_of(const ir::Graph& forward, const BackwardGraph& whole, std::span<const ir::ValueId> wanted, const std::vector<bool>& given,
                      const std::vector<bool>& asked);

/// The gradients of a backward graph computed from the beginning, to be differentiated: inputs are those of `forward` and then the gradient of each of
/// `of.results`, outputs the gradients, and then, of the kind `saved`, what the backward graph reads of the forward's values, which have the same ids.
/// `given`: by result of `of`; zeros where there is no gradient but for what is not given.
ir::Graph gradients_anew(const ir::Graph& forward, const BackwardGraph& of, std::span<const ir::ValueId> wanted, const std::vector<bool>& given = {});

/// The graph with `count` of its outputs given: their values are inputs behind its own, and what only they need is gone. Throws (unsupported) where
/// something random or foreign would be computed.
ir::Graph from_outputs(const ir::Graph& graph, std::size_t first, std::size_t count);

}  // namespace tenon::rewrite
