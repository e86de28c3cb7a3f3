// Which nodes this backend takes, and in which groups.
#pragma once

#include "core/ir/graph.h"
#include "products/product_steps.h"
#include "tenon/backend.h"

namespace tenon::cuda {

/// What options say of what is claimed.
struct ClaimChoices {
  bool tensor_cores = true;
  Rounding rounding{};  // a library that rounds is faster at smaller products
};

/// Claims every node that has code by itself, in groups as large as convexity allows, each on one card.
void claim_nodes(const ir::Graph& graph, Claims& claims, const ClaimChoices& choices);

}  // namespace tenon::cuda
