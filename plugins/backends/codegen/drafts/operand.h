// The operands of a sum of products, by what their operations read.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <vector>

#include "core/ir/graph.h"
#include "loops/kernel.h"

namespace tenon::codegen {

/// The loops that an operation depends on, through its operands.
std::set<SymbolId> loops_of(std::span<const Operation> operations, OpId root);

/// The constant by which some load divides the loop, if any: as the channels of a convolution by its groups.
std::optional<std::int64_t> divisor_of(std::span<const Operation> operations, SymbolId loop);

/// What a value is cast from without being moved: half precision of what it is summed in.
std::optional<ir::ValueId> half_before_cast(const ir::Graph& graph, ir::ValueId value);

/// A load that is affine in all loops: the stride along each of `loops`, and the offset.
struct InPlace {
  ir::ValueId value;
  Dim offset;
  std::vector<Dim> strides;
};
std::optional<InPlace> in_place(std::span<const Operation> operations, std::span<const ir::ValueId> buffers, OpId root, std::span<const Loop> loops);

}  // namespace tenon::codegen
