#include "rule_set.h"

namespace tenon::simplify {
namespace {

using namespace rewrite;

/// The comparison `name` of slots 0 and 1, unless they are floats: NaN makes both a comparison and its opposite false.
auto opposite(const char* name) {
  return [name](Match& m) -> std::optional<ValueId> {
    const bool floats = is_float(m.type(0).dtype) || is_float(m.type(1).dtype);
    return floats ? std::nullopt : std::optional(m.make(name, {m[0], m[1]}));
  };
}

RuleSet bools() {
  return {
      // not not p = p, for bools. (Of another dtype `not` gives bool, so the types differ and the rule does not apply.)
      {"not_not", op("logical_not", {op("logical_not", {any(0)})}), first_slot},
      // p and true = p
      {"and_true", op("logical_and", {any(0), number(1)}).commuted(), first_slot},
      // p or false = p
      {"or_false", op("logical_or", {any(0), number(0)}).commuted(), first_slot},
      // p xor false = p
      {"xor_false", op("logical_xor", {any(0), number(0)}).commuted(), first_slot},
      // p and p = p
      {"and_self", op("logical_and", {any(0), any(0)}), first_slot},
      // p or p = p
      {"or_self", op("logical_or", {any(0), any(0)}), first_slot},
      // p and (p or q) = p
      {"and_absorbs_or", op("logical_and", {any(0), op("logical_or", {any(0), any(1)}).commuted()}).commuted(), first_slot},
      // p or (p and q) = p
      {"or_absorbs_and", op("logical_or", {any(0), op("logical_and", {any(0), any(1)}).commuted()}).commuted(), first_slot},
  };
}

RuleSet bits() {
  return {
      // ~~x = x
      {"bitwise_not_not", op("bitwise_not", {op("bitwise_not", {any(0)})}), first_slot},
      // x & x = x
      {"bitwise_and_self", op("bitwise_and", {any(0), any(0)}), first_slot},
      // x | x = x
      {"bitwise_or_self", op("bitwise_or", {any(0), any(0)}), first_slot},
      // x & -1 = x: -1 is all ones in every width.
      {"bitwise_and_ones", op("bitwise_and", {any(0), number(-1)}).commuted(), first_slot},
      // x | 0 = x
      {"bitwise_or_zero", op("bitwise_or", {any(0), number(0)}).commuted(), first_slot},
      // x ^ 0 = x
      {"bitwise_xor_zero", op("bitwise_xor", {any(0), number(0)}).commuted(), first_slot},
  };
}

RuleSet comparisons() {
  return {
      // not (a = b) is a ≠ b, with NaN too: it is unequal to everything.
      {"not_eq", op("logical_not", {op("eq", {any(0), any(1)})}), becomes("ne")},
      // not (a ≠ b) is a = b
      {"not_ne", op("logical_not", {op("ne", {any(0), any(1)})}), becomes("eq")},
      // not (a < b) is a ≥ b, for integers and bools.
      {"not_lt", op("logical_not", {op("lt", {any(0), any(1)})}), opposite("ge")},
      // not (a ≤ b) is a > b
      {"not_le", op("logical_not", {op("le", {any(0), any(1)})}), opposite("gt")},
      // not (a > b) is a ≤ b
      {"not_gt", op("logical_not", {op("gt", {any(0), any(1)})}), opposite("le")},
      // not (a ≥ b) is a < b
      {"not_ge", op("logical_not", {op("ge", {any(0), any(1)})}), opposite("lt")},
  };
}

RuleSet choices() {
  return {
      // where(p, x, x) = x
      {"where_same", op("where", {any(1), any(0), any(0)}), first_slot},
      // where(not p, a, b) = where(p, b, a), for a bool p.
      {"where_not", op("where", {op("logical_not", {any(0)}), any(1), any(2)}),
       [](Match& m) -> std::optional<ValueId> {
         if (m.type(0).dtype != DType::b8) return {};
         return m.make("where", {m[0], m[2], m[1]});
       }},
      // where(p, true, false) = p
      {"where_true_false", op("where", {any(0), number(1), number(0)}), first_slot},
  };
}

}  // namespace

RuleSet logic_rules() {
  RuleSet all = bools();
  for (RuleSet set : {bits(), comparisons(), choices()}) std::move(set.begin(), set.end(), std::back_inserter(all));
  return all;
}

}  // namespace tenon::simplify
