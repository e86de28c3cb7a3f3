#include <string>

#include "rule_set.h"

namespace tenon::simplify {
namespace {

using namespace rewrite;

constexpr const char* kRoundings[] = {"floor", "ceil", "trunc", "round"};

/// round(floor(x)) = floor(x), and so for every two of them: what is integral already, infinite or NaN, stays.
RuleSet roundings() {
  RuleSet rules;
  for (const char* outer : kRoundings)
    for (const char* inner : kRoundings)
      rules.push_back({"rounding_twice", op(outer, {op(inner, {any(0)})}),
                       [inner](Match& m) -> std::optional<ValueId> { return m.make(inner, {m[0]}); }});
  return rules;
}

RuleSet extremes() {
  RuleSet rules;
  for (const char* extreme : {"maximum", "minimum"}) {
    // max(x, x) = x
    rules.push_back({"extreme_self", op(extreme, {any(0), any(0)}), first_slot});
    // max(max(x, y), y) = max(x, y)
    rules.push_back({"extreme_twice", op(extreme, {op(extreme, {any(0), any(1)}).commuted(), any(1)}).commuted(),
                     [extreme](Match& m) -> std::optional<ValueId> { return m.make(extreme, {m[0], m[1]}); }});
  }
  // relu(relu(x)) = relu(x)
  rules.push_back({"relu_relu", op("relu", {op("relu", {any(0)})}),
                   [](Match& m) -> std::optional<ValueId> { return m.make("relu", {m[0]}); }});
  // relu(|x|) = |x|
  rules.push_back({"relu_abs", op("relu", {op("abs", {any(0)})}),
                   [](Match& m) -> std::optional<ValueId> { return m.make("abs", {m[0]}); }});
  return rules;
}

}  // namespace

RuleSet rounding_rules() {
  RuleSet all = roundings();
  for (rewrite::Rule& rule : extremes()) all.push_back(std::move(rule));
  return all;
}

}  // namespace tenon::simplify
