// In which order the dimensions of a tensor lie in memory whose sizes depend on data.
#pragma once

#include <vector>

#include "core/ir/graph.h"
#include "python/metadata/strides.h"

namespace tenon::python {

/// Dense strides over sizes that are not known, in the order in memory that `strides` of the made-up sizes `made_up` have. Throws GraphBreak
/// where those leave gaps.
ir::Shape late_strides(const Extents& made_up, const Extents& strides, const ir::Shape& shape);

/// An operand of a pointwise operation.
struct LateOperand {
  ir::Shape shape, strides;
};

/// Whether the rules for the strides of a pointwise result put its dimensions in one order, whatever the sizes that depend on data are, from
/// 2 on: they go by which of two strides of an operand is larger, and by which size is where strides are equal.
bool lies_in_one_order(const ir::Graph& graph, const ir::Shape& result, std::span<const LateOperand> operands);

}  // namespace tenon::python
