// Recognises sums of products in loop nests (matrix products, convolutions), so that they can run on a matrix kernel.
#pragma once

#include <optional>

#include "drafts/draft.h"
#include "drafts/product.h"

namespace tenon::codegen {

/// Loops that a product may be repeated over.
inline constexpr std::size_t kMostBatchLoops = 6;

/// True when the body is a plain sum of products of two loads, in float32 or float64; a mask gives zero.
bool is_sum_of_products(const ir::Graph& graph, NodeId node, const ops::LoopBody& body);

/// The product as rows times columns, repeated over batch loops. An operand that is one strided matrix, or that lies in windows, is read in
/// place; any other is computed (windows of short runs, with zeros for their padding). Nothing when the loops are no rows and columns.
std::optional<Product> as_product(const FusionContext& context, NodeId node);

/// As a machine judges it.
ProductSize size_of_product(const IndexAlgebra& algebra, const Product& product);

}  // namespace tenon::codegen
