#include "rule_set.h"

namespace tenon::canonical {
namespace {

using namespace rewrite;

/// Bits of the integers that a dtype holds exactly: the width of integers without the sign, the significand of floats.
int exact_bits(DType t) {
  switch (t) {
    case DType::b8: return 1;
    case DType::u8: return 8;
    case DType::i8: return 7;
    case DType::i16: return 15;
    case DType::i32: return 31;
    case DType::i64: return 63;
    case DType::bf16: return 8;
    case DType::f16: return 11;
    case DType::f32: return 24;
    case DType::f64: return 53;
    default: return 0;
  }
}

/// True when every value of `from` is one of `to`.
bool is_lossless(DType from, DType to) {
  if (from == to) return true;
  if (is_complex(from) || is_complex(to) || is_bool(to)) return false;
  if (is_float(from)) return is_float(to) && size_of(to) > size_of(from);
  if (is_float(to)) return exact_bits(to) >= exact_bits(from) && to != DType::f16 && to != DType::bf16;
  const bool keeps_sign = is_signed_int(to) || !is_signed_int(from);
  return keeps_sign && exact_bits(to) >= exact_bits(from);
}

/// cast(cast(x, a), b) = cast(x, b), when casting to a lost nothing: both convert the same number once. Integers wrap where floats have no
/// defined result, so an integer that went through a float must fit the last type.
std::optional<ValueId> one_cast(Match& m) {
  const DType from = m.type(0).dtype;
  const DType between = m.rewriter().graph().type(m.node().operands[0]).dtype;
  const DType to = m.type().dtype;
  if (!is_lossless(from, between)) return {};
  if (is_float(between) && !is_float(from) && is_int(to) && !is_lossless(from, to)) return {};
  if (from == to) return m[0];
  return m.make("_to_copy", {m[0]}, {{"dtype", to}});
}

/// cast(x, its own dtype) = x
std::optional<ValueId> source_if_same_dtype(Match& m) {
  return m.type().dtype == m.type(0).dtype ? std::optional(m[0]) : std::nullopt;
}

}  // namespace

RuleSet cast_rules() {
  const Pattern cast = op("_to_copy", {any(0)}).with_attributes();
  return {
      {"cast_same", cast, source_if_same_dtype},
      {"cast_cast", op("_to_copy", {cast}).with_attributes(), one_cast},
  };
}

}  // namespace tenon::canonical
