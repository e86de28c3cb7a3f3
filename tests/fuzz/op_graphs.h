// Graphs of every op of the catalogue, sound and malformed.
#pragma once

#include <string>
#include <vector>

#include "core/ir/graph.h"
#include "core/ops/op.h"
#include "fuzz/mutate.h"

namespace tenon::fuzz {

/// A graph of one node of the op: one of the op's samples, of which operands, attributes and declared results may have been changed. Where it
/// is possible the results are declared as inference gives them, so that much of what is made is accepted.
ir::Graph op_graph(const ops::Op& op, Random& random);

/// The op's samples, each with one size of one operand changed: to nothing, to one, by one, doubled. Nothing but a size is wrong with them, which is what
/// inference that forgets to compare two sizes takes.
std::vector<ir::Graph> resized_samples(const ops::Op& op);

/// Some graphs of ops one behind the other: results of one are operands of the next where that fits.
ir::Graph chain_of_ops(Random& random);

/// A graph that runs the given one, or a variant of it, as a predicate says; graphs with symbols or constants stay as they are.
ir::Graph as_branches(ir::Graph graph, Random& random);

/// Puts other op names, dtypes, sizes and attribute values into a graph, wherever they stand, in regions too.
void mutate_types(ir::Graph& graph, Random& random);

}  // namespace tenon::fuzz
