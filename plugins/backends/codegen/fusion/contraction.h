// Recognises sums of products in loop nests (matrix products, convolutions), so that they can run on a matrix kernel.
#pragma once

#include <optional>

#include "fusion/draft.h"
#include "fusion/plan.h"

namespace tenon::codegen {

/// True when the body is a plain sum of products of two loads, in float32 or float64; a mask gives zero.
bool is_sum_of_products(const ir::Graph& graph, NodeId node, const ops::LoopBody& body);

/// A product, and its result's index where the kernel after it stands: at `row` and `column` of a tile.
struct Contraction {
  ContractionStep step;
  Loop row, column;
  std::vector<Dim> index;
};

/// The product as rows times columns, repeated over batch loops. An operand that is one strided matrix is read in place; of any
/// other a kernel writes the parts that are multiplied (the windows of a convolution, with zeros for its padding).
/// Nothing when the loops are no rows and columns.
std::optional<Contraction> as_contraction(const FusionContext& context, NodeId node);

/// As a machine judges it.
ProductSize size_of_product(const IndexAlgebra& algebra, const ContractionStep& product);

/// Makes the kernel that runs on each tile of the product: `kernel` over the loops `outer` of the result, reading the product.
KernelStep on_tiles(KernelStep over_result, const Contraction& product, const FusionContext& context);

}  // namespace tenon::codegen
