// Recognises sums of products in loop nests, so that they can run on a matrix kernel.
#pragma once

#include <optional>

#include "fusion/draft.h"
#include "fusion/plan.h"

namespace tenon::codegen {

/// True when the body is sum over one loop of a product of two unmasked loads, in float32 or float64.
bool is_sum_of_products(const ir::Graph& graph, NodeId node, const ops::LoopBody& body);

/// The product as strided operands in memory, where `context.in_memory` holds for what the operands (through views) come from;
/// nothing when an index is not affine or the loops are no batch, rows and columns.
std::optional<ContractionStep> as_contraction(const FusionContext& context, NodeId node);

}  // namespace tenon::codegen
