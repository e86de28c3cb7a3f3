// A sum of products as loops, each with the operands that step along it.
#pragma once

#include <optional>
#include <vector>

#include "drafts/draft.h"
#include "drafts/product.h"

namespace tenon::codegen {

/// The loops of a product, with its operands as operations of the draft.
struct Nest {
  Draft draft;
  std::vector<Dim> result;  // the index of the result, over the loops
  std::vector<Role> outer;
  std::vector<Loop> summed;
  OpId a = kNoOp, b = kNoOp;
};

/// Loops that an operand's index divides are split, and then each part has a role. Nothing when the node is no plain product.
std::optional<Nest> nest_of(const FusionContext& context, NodeId node);

}  // namespace tenon::codegen
