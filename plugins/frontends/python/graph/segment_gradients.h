// The graph that gives the gradients of a segment, and what the segment keeps for it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/ir/graph.h"
#include "core/rewrite/differentiated.h"

namespace tenon::python {

struct CapturedGraph;

/// How a gradient that torch gives lies in memory.
enum class TangentLayout : std::uint8_t {
  none,        // there is no gradient: nothing of it is read
  row_major,
  as_result,   // as the result whose gradient it is
  one_element  // all its elements are one: what `sum` hands on
};

/// What a gradient that torch gives is to gradients of gradients.
enum class TangentHistory : std::uint8_t { none, untracked, tracked };  // none: there is no gradient

/// A graph of gradients.
struct GradientGraph {
  std::shared_ptr<CapturedGraph> captured;  // of kept inputs, kept tensors, and a gradient for each result
  std::vector<std::optional<std::uint32_t>> gradients;  // by wanted value: which of its tensors; none where there is none
};

/// A node that a segment adds to torch's autograd graph: from inputs that require grad, and results of other nodes, to some results that do.
struct GradientNode {
  rewrite::BackwardGraph part;              // without its graph
  std::vector<std::uint32_t> results;       // CapturedGraph::tensors, in memory of their own, or that only nodes know
  std::vector<std::uint32_t> kept_tensors;  // CapturedGraph::tensors that are read; inputs that are read are in `part`
  GradientGraph whole;                      // all gradients, from row-major ones
  std::vector<std::uint32_t> order;  // the numbers of the inputs among those with a gradient, as torch's engine comes to them
};

struct SegmentGradients {
  ir::Graph forward;                  // in place of the recorded graph: behind its outputs are those that are only kept
  std::optional<ir::Graph> run;       // in place of it, where it says gradients itself, or what another node has kept is given
  std::vector<std::uint32_t> wanted;  // inputs of the graph that require grad
  std::size_t outer = 0;              // of gradients of gradients: how many values are wanted, behind the inputs, whose nodes are older
  std::vector<std::uint32_t> inner;   // CapturedGraph::tensors by which results are differentiated that depend on them; wanted behind those
  std::vector<ir::ValueId> values;    // of `forward`: what is wanted
  bool has_functions = false;         // of the program's, with gradients of their own
  std::vector<GradientNode> nodes;    // what a node hands gradients to comes before it

  std::size_t wanted_count() const { return values.size(); }
  bool is_input(std::size_t w) const { return w < wanted.size(); }
  bool is_inner(std::size_t w) const { return w >= wanted.size() + outer; }
  std::uint32_t inner_tensor(std::size_t w) const { return inner[w - wanted.size() - outer]; }
};

/// Adds them to a captured graph of which results require grad, and the tensors that are kept. Throws GraphBreak where it has no gradient.
/// `known`: what of `Keeping` is the recording's to say.
void add_gradients(CapturedGraph& captured, const rewrite::Keeping& known);

/// The gradients of a node for what is asked, from tangents that lie in some way. `asked`: by wanted value. Throws Exception.
GradientGraph gradients_of(const CapturedGraph& captured, const GradientNode& node, std::span<const TangentLayout> tangents, const std::vector<bool>& asked);

/// The gradients of a node as a graph with gradients of its own by the inputs and tangents that require grad: what torch differentiates where a gradient
/// is to have one. Its inputs are those of the segment, then a row-major gradient for each of its results, then what the node has kept of the segment's
/// tensors; of these it reads what the node keeps. Its outer values are those inside the segment that the node has a gradient of, then maybe its result. Null where nothing that
/// requires grad reaches any gradient. Throws GraphBreak where there is none. `given`: by result.
std::shared_ptr<CapturedGraph> gradients_with_gradients(const CapturedGraph& captured, const GradientNode& node, const std::vector<TangentHistory>& given);

}  // namespace tenon::python
