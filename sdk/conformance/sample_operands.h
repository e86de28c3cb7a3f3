// The operands of a sample as values of a graph: what the graphs that differ from a sample's own are built with.
#pragma once

#include <functional>
#include <vector>

#include "core/ops/reference/sample.h"

namespace tenon::conformance {

/// Makes the value of the i-th tensor operand.
using AddTensor = std::function<ValueId(std::size_t i, const ops::SampleOperand& operand)>;

/// The operands in order: literals as they are, tensors as `add_tensor` makes them.
std::vector<ValueId> add_operands(ir::Graph& graph, const ops::Sample& sample, const AddTensor& add_tensor);
/// A row-major input for an operand.
ValueId add_input(ir::Graph& graph, const ops::SampleOperand& operand);
/// Makes values the outputs, as results.
void add_outputs(ir::Graph& graph, const std::vector<ValueId>& values);

}  // namespace tenon::conformance
