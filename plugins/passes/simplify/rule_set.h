// The laws of `simplify`, a file for each kind.
#pragma once

#include <vector>

#include "core/rewrite/rules.h"

namespace tenon::simplify {

using RuleSet = std::vector<rewrite::Rule>;

/// Sums, products, powers, signs: laws that hold for floats (and, where they take them, integers).
RuleSet arithmetic_rules();
/// Laws of wrapping integer arithmetic that do not hold for floats.
RuleSet integer_rules();
/// Logic of bools, bits of integers, comparisons, choices.
RuleSet logic_rules();
/// Rounding to integers, extremes.
RuleSet rounding_rules();
/// Normalisation by constants.
RuleSet norm_rules();
/// Averages over windows.
RuleSet pool_rules();
/// Copies between devices that change nothing.
RuleSet copy_rules();

/// The replacement of a law whose right side is what slot 0 bound.
inline std::optional<ValueId> first_slot(rewrite::Match& match) { return match[0]; }

/// The replacement of a law whose right side is the op of slots 0 and 1.
inline auto becomes(const char* name) {
  return [name](rewrite::Match& m) -> std::optional<ValueId> { return m.make(name, {m[0], m[1]}); };
}

}  // namespace tenon::simplify
