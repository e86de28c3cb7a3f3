// Which values of a graph its gradients are to find in memory, and which they compute again.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/ir/graph.h"

namespace tenon::rewrite {

/// Values that gradients need, in some order: what it costs to keep one, or to compute it again from its operands, which are needed then. In picoseconds of
/// this kind of machine; memory has its price too.
struct KeepNetwork {
  struct Value {
    ir::ValueId id;
    std::int64_t keep = 0, compute = 0;
    bool needed = false;                  // read by a gradient, whatever else is
    std::vector<std::uint32_t> operands;  // by number
  };
  std::vector<Value> values;
  static constexpr std::int64_t kNever = 1'000'000'000'000'000;
};

/// Says by value whether it is kept: the choice that costs least. A value that is neither needed nor read by one that is computed again is not.
using ChooseKept = std::function<std::vector<bool>(const KeepNetwork&)>;

/// Whether torch lets go of anything once gradients have gone through its nodes for these: of `reading` gradients are computed from what they read or give.
using LetsGo = std::function<bool(std::span<const ir::NodeId> reading, std::span<const ir::NodeId> others)>;

struct Keeping {
  ChooseKept choose;
  /// Inputs that may be overwritten before the gradients are computed: what is kept of them is a copy.
  std::vector<ir::ValueId> overwritten = {};
  /// Values that torch has as tensors, which it saves: they are not computed again from inputs and results, which the program may have written since in ways
  /// that no version counts (through `.data`, through a view of NumPy's). What a call computes on the way torch computes again, too.
  std::vector<ir::ValueId> tensors = {};
  std::vector<ir::ValueId> fixed = {};  // inputs that nobody can write: numbers
  std::vector<ir::ValueId> missing = {};  // inputs that are not there: nothing is kept of them
  LetsGo lets_go = {};  // without it, where there are such that read
  std::vector<std::uint32_t> numbers = {};  // outputs of the forward that its caller gets as numbers, which hold nothing: what is kept of them is an output of its own
};

/// A graph whose first nodes are a forward pass, and whose other nodes give gradients.
struct GradientsInGraph {
  const ir::Graph& graph;
  std::size_t forward_nodes;
  std::span<const ir::ValueId> gradients;
};

/// The values to keep. Without a choice all that can be is computed again: what is computed element by element. What sums, sorts, gathers or multiplies, and
/// random values and those of foreign code always are kept; of inputs those that an update, or somebody else, overwrites.
std::vector<ir::ValueId> kept_values(const GradientsInGraph& joint, const Keeping& keeping);

}  // namespace tenon::rewrite
