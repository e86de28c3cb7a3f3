#include "rule_set.h"

namespace tenon::simplify {
namespace {

using namespace rewrite;

bool is_integer(Match& m) { return is_int(m.type().dtype); }

/// The replacement of `replace`, for integers only.
template <class Replace>
auto for_integers(Replace replace) {
  return [replace](Match& m) -> std::optional<ValueId> { return is_integer(m) ? replace(m) : std::nullopt; };
}

/// `name`(x, c op d) for name(name(x, c), d), in arithmetic that wraps at 64 bits: what a narrower dtype keeps of it is the same.
template <class Combine>
auto joined_constants(const char* name, Combine combine) {
  return for_integers([name, combine](Match& m) -> std::optional<ValueId> {
    const auto c = static_cast<std::uint64_t>(static_cast<std::int64_t>(m.number(1)));
    const auto d = static_cast<std::uint64_t>(static_cast<std::int64_t>(m.number(2)));
    return m.make(name, {m[0], m.literal(ir::Dim(static_cast<std::int64_t>(combine(c, d))))});
  });
}

}  // namespace

RuleSet integer_rules() {
  return {
      // x + 0 = x, for integers and for bools, where + is `or`. (A float -0 would become +0.)
      {"add_zero_integer", op("add", {any(0), number(0)}).commuted(),
       [](Match& m) -> std::optional<ValueId> { return is_float(m.type().dtype) ? std::nullopt : std::optional(m[0]); }},
      // -(a - b) = b - a. (For floats a = b gives -0 on the left and +0 on the right.)
      {"neg_sub_integer", op("neg", {op("sub", {any(0), any(1)})}),
       for_integers([](Match& m) -> std::optional<ValueId> { return m.make("sub", {m[1], m[0]}); })},
      // (a - b) + b = a. (Floats round on the way.)
      {"sub_add_integer", op("add", {op("sub", {any(0), any(1)}), any(1)}).commuted(), for_integers(first_slot)},
      // (a + b) - b = a
      {"add_sub_integer", op("sub", {op("add", {any(0), any(1)}).commuted(), any(1)}), for_integers(first_slot)},
      // (x + c) + d = x + (c + d)
      {"add_constants_integer", op("add", {op("add", {any(0), constant(1)}).commuted(), constant(2)}).commuted(),
       joined_constants("add", [](std::uint64_t c, std::uint64_t d) { return c + d; })},
      // (x * c) * d = x * (c * d)
      {"mul_constants_integer", op("mul", {op("mul", {any(0), constant(1)}).commuted(), constant(2)}).commuted(),
       joined_constants("mul", [](std::uint64_t c, std::uint64_t d) { return c * d; })},
  };
}

}  // namespace tenon::simplify
