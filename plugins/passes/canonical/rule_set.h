// The rules of `canonical`, a file for each kind.
#pragma once

#include <vector>

#include "core/rewrite/rules.h"

namespace tenon::canonical {

using RuleSet = std::vector<rewrite::Rule>;

/// The order of operands, literals, implicit broadcasting: of all pointwise ops.
RuleSet operand_rules();
/// Reshapes, permutations, expansions, slices, flips, copies.
RuleSet view_rules();
/// Changes of dtype.
RuleSet cast_rules();
/// Writes to what a mask chooses.
RuleSet mask_rules();

}  // namespace tenon::canonical
