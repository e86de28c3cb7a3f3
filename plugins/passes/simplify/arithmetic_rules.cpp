#include <cmath>

#include "rule_set.h"

namespace tenon::simplify {
namespace {

using namespace rewrite;

/// 1/c when dividing by c and multiplying by 1/c round alike: c is a power of two whose inverse is a normal float32.
std::optional<double> exact_inverse(double c) {
  int exponent = 0;
  if (!std::isfinite(c) || std::abs(std::frexp(c, &exponent)) != 0.5 || std::abs(exponent) > 100) return {};
  return 1 / c;
}

std::optional<ValueId> times_exact_inverse(Match& m) {
  const auto inverse = exact_inverse(m.number(1));
  if (!inverse || !is_float(m.type().dtype)) return {};
  return m.make("mul", {m[0], m.literal(*inverse)});
}

auto becomes_unary(const char* name) {
  return [name](Match& m) -> std::optional<ValueId> { return m.make(name, {m[0]}); };
}

RuleSet neutral_elements() {
  return {
      // x - 0 = x. For floats the zero is +0: -0 - +0 = -0, so the sign of a zero survives. (x - -0 would turn -0 into +0.)
      {"sub_zero", op("sub", {any(0), number(0.0)}), first_slot},
      // x + -0 = x: IEEE 754, 6.3: the sum of two zeros of unlike sign is +0, of like sign that zero. (x + +0 would turn -0 into +0.)
      {"add_negative_zero", op("add", {any(0), number(-0.0)}).commuted(), first_slot},
      // x * 1 = x
      {"mul_one", op("mul", {any(0), number(1)}).commuted(), first_slot},
      // x / 1 = x
      {"div_one", op("div", {any(0), number(1)}), first_slot},
      // x ** 1 = x
      {"pow_one", op("pow", {any(0), number(1)}), first_slot},
  };
}

RuleSet signs() {
  return {
      // -(-x) = x: negation flips the sign bit; of integers it wraps both ways.
      {"neg_neg", op("neg", {op("neg", {any(0)})}), first_slot},
      // x * -1 = -x
      {"mul_minus_one", op("mul", {any(0), number(-1)}).commuted(), becomes_unary("neg")},
      // a + -b = a - b: IEEE 754 defines the difference so.
      {"add_neg", op("add", {any(0), op("neg", {any(1)})}).commuted(), becomes("sub")},
      // a - -b = a + b
      {"sub_neg", op("sub", {any(0), op("neg", {any(1)})}), becomes("add")},
      // -a * -b = a * b
      {"mul_neg_neg", op("mul", {op("neg", {any(0)}), op("neg", {any(1)})}), becomes("mul")},
      // -a / -b = a / b
      {"div_neg_neg", op("div", {op("neg", {any(0)}), op("neg", {any(1)})}), becomes("div")},
      // |-x| = |x|, but for unsigned integers, of which -x is another positive number
      {"abs_neg", op("abs", {op("neg", {any(0)})}),
       [](Match& m) -> std::optional<ValueId> { return m.type().dtype == DType::u8 ? std::nullopt : std::optional(m.make("abs", {m[0]})); }},
      // ||x|| = |x|
      {"abs_abs", op("abs", {op("abs", {any(0)})}), becomes_unary("abs")},
      // |x|² = x²
      {"square_abs", op("square", {op("abs", {any(0)})}), becomes_unary("square")},
      // (-x)² = x²
      {"square_neg", op("square", {op("neg", {any(0)})}), becomes_unary("square")},
  };
}

RuleSet products() {
  return {
      // x ** 2 = x * x: so the catalogue defines the power of two.
      {"pow_two", op("pow", {any(0), number(2)}), [](Match& m) -> std::optional<ValueId> { return m.make("mul", {m[0], m[0]}); }},
      // x / 2^k = x * 2^-k: both round the same real number once.
      {"div_power_of_two", op("div", {any(0), constant(1)}), times_exact_inverse},
  };
}

}  // namespace

RuleSet arithmetic_rules() {
  RuleSet all = neutral_elements();
  for (RuleSet set : {signs(), products()}) std::move(set.begin(), set.end(), std::back_inserter(all));
  return all;
}

}  // namespace tenon::simplify
