// The graph that gives the gradients of a segment, and what the segment keeps for it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/ir/graph.h"

namespace tenon::python {

struct CapturedGraph;

/// A node that a segment adds to torch's autograd graph: from the inputs that require grad to some results that do.
struct GradientNode {
  std::vector<std::uint32_t> results;       // CapturedGraph::tensors, in memory of their own
  std::vector<std::uint32_t> kept_inputs;   // inputs of the graph that `backward` reads
  std::vector<std::uint32_t> kept_tensors;  // CapturedGraph::tensors that it reads
  std::shared_ptr<CapturedGraph> backward;  // of kept inputs, kept tensors, and a gradient in row-major order for each of `results`
  std::vector<std::optional<std::uint32_t>> gradients;  // by wanted input: which of the tensors of `backward`; none where nothing reads it
  std::vector<std::uint32_t> order;  // the numbers of these inputs among those with a gradient, as torch comes by their gradients: what is read first comes last
};

struct SegmentGradients {
  ir::Graph forward;                  // runs in place of the recorded graph: behind its outputs are those that are only kept
  std::vector<std::uint32_t> wanted;  // inputs of the graph that require grad
  std::vector<GradientNode> nodes;    // results that share nothing that is differentiated have nodes of their own
};

/// Adds them to a captured graph of which results require grad, and the tensors that are kept. Throws GraphBreak where it has no gradient.
void add_gradients(CapturedGraph& captured);

/// The gradients of a node as a graph of the segment's inputs, of the kept tensors and of a row-major gradient for each of its results, with gradients of its own by all of
/// these that require grad: what torch differentiates where a gradient is to have one. Throws GraphBreak where there is none.
std::shared_ptr<CapturedGraph> gradients_with_gradients(const CapturedGraph& captured, const GradientNode& node);

}  // namespace tenon::python
