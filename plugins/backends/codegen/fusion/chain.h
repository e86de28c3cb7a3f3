// Two products with a kernel over whole rows between them (attention): done a block of rows at a time, so that neither the first product
// nor what the kernel makes of it lies in memory.
#pragma once

#include <optional>
#include <vector>

#include "drafts/draft.h"
#include "fusion/plan.h"

namespace tenon::codegen {

/// Makes one step of three: `between` reads the result of `first` and writes the left operand of `second`, each row from the same row.
/// Nothing when their loops do not agree, or when rows are not dense. `between` has the loops of the value, before they are shaped.
std::optional<ChainStep> as_chain(const FusionContext& context, const Product& first, const KernelStep& between, const Product& second);

}  // namespace tenon::codegen
