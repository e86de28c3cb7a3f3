// Which values stay alive because one that is needed later is not computed yet.
#pragma once

#include <vector>

#include "drafts/draft.h"
#include "fusion/plan.h"

namespace tenon::codegen {

double estimated_bytes(const ir::Type& type, const IndexAlgebra& algebra);

/// The bytes of results that are alive at once, at most, when each node is computed by itself: from there to the last that reads it.
double most_alive_node_by_node(const ir::Graph& graph, const IndexAlgebra& algebra);

/// When the values live that the steps of a plan write, temporaries too.
struct Lives {
  static constexpr std::size_t kNever = static_cast<std::size_t>(-1);
  std::vector<std::size_t> first, last;  // by value: the step that begins it, and the last that uses it; of outputs the end of the plan
  std::vector<double> bytes;             // by value

  /// The bytes that are alive at each step.
  std::vector<double> alive_at_steps(std::size_t steps) const;
};

Lives lives_of(const Plan& plan, const ir::Graph& graph, const IndexAlgebra& algebra);

/// Follows the nodes of a graph in their order, while it is decided which of their values live in memory.
class Lifetimes {
 public:
  Lifetimes(const ir::Graph& graph, const IndexAlgebra& algebra, const FusionContext& context);

  /// The bytes of values in memory that would stay alive for `operand` alone until the next node reads it, while others have been written since it
  /// could be computed; of each no more than `operand` has. Nothing is kept for what is in memory. Inputs and constants are alive anyway.
  double kept_for(ValueId operand) const;

  double bytes_of(ValueId value) const { return estimated_bytes(graph_.type(value), algebra_); }

  /// Goes on to what follows the node.
  void pass(NodeId node);

 private:
  bool is_passing(ValueId value) const;
  /// The values in memory, as it is decided now, that an element is made of.
  std::vector<ValueId> needs_of(ValueId value) const;

  const ir::Graph& graph_;
  const IndexAlgebra& algebra_;
  const FusionContext& context_;
  std::vector<std::size_t> place_;     // by NodeId: in the order of the graph
  std::vector<std::size_t> last_use_;  // by ValueId: the place of the last node that reads it
  std::size_t last_written_ = 0;       // the place of the last node whose values live in memory
};

}  // namespace tenon::codegen
