#include "core/ops/notation/scaled_operands.h"

namespace tenon::ops {
namespace {

/// A number that torch also takes as a tensor without dimensions: weak, so the operands beside it decide its dtype, and where it is read.
ir::ValueId weak_number(ForeignArguments& a, std::string_view parameter, DType common, std::span<const ir::ValueId> beside) {
  const auto* tensor = a[parameter].as<ir::ValueId>();
  if (!tensor) return a.value(parameter);
  const ir::Type& type = a.type(*tensor);
  // In narrower types torch computes with the number's own precision, or refuses numbers that do not fit.
  const bool wide = common == DType::f32 || common == DType::f64 || common == DType::i64;
  if (type.rank() != 0 || !(wide || type.dtype == common) || is_bool(type.dtype) || is_complex(type.dtype) || (is_float(type.dtype) && !is_float(common)))
    throw Exception(error(Code::unsupported, "argument '{}' as a tensor of {}", parameter, name_of(type.dtype)));
  const ir::ValueId number = a.builder().cast(*tensor, common);
  if (a.type(number).device.is_host()) return number;
  a.builder().on(infer::device(OpQuery(a.graph(), beside, {})));
  return a.builder().to_device(number, a.builder().device());
}

/// The number that other is scaled by, in the dtype that the operands have in common.
ir::ValueId alpha_factor(ForeignArguments& a, DType common, std::span<const ir::ValueId> both) {
  const ForeignArgument& alpha = a["alpha"];
  if (alpha.as<bool>() && !is_bool(common)) throw Exception(Code::invalid_argument, "Boolean alpha only supported for Boolean results.");
  if (alpha.as<double>() && !is_float(common)) throw Exception(Code::invalid_argument, "For integral input tensors, argument alpha must not be a floating point number.");
  if (const ir::Dim* whole = alpha.as<ir::Dim>(); is_bool(common) && whole && whole->is_constant()) return a.builder().literal(whole->constant() != 0);
  return weak_number(a, "alpha", common, both);
}

/// torch's `alpha`: other is scaled before it is added; of floats, in one rounding.
Values with_alpha(ForeignArguments& a, std::string_view op) {
  std::vector<ir::ValueId> both{a.value("self"), a.value("other")};
  a.round_numbers(op, both, Promotion::common);
  ir::ValueId x = both[0], y = both[1];
  TENON_USER_CHECK(op != "sub" || a.numpy() || !(is_bool(a.type(x).dtype) || is_bool(a.type(y).dtype)), "Subtraction with a bool tensor is not supported.");
  const ForeignArgument& alpha = a["alpha"];
  const bool one = (alpha.as<ir::Dim>() && *alpha.as<ir::Dim>() == ir::Dim(1)) || (alpha.as<double>() && *alpha.as<double>() == 1);
  if (!a.given("alpha") || one) return a.call(op, {x, y});
  // The scaled operand takes part in promotion with its own dtype, so the scaling happens in the common dtype.
  const DType common = a.promoted(both, Promotion::common);
  const ir::ValueId factor = alpha_factor(a, common, both);
  // torch rounds numbers to a narrow dtype too, and nothing else before the end.
  x = a.tensor(x, common), y = a.tensor(y, common);
  if (!is_float(common)) return a.call(op, {x, a.one("mul", {y, factor})});
  return a.call("fma", {y, op == "sub" ? a.one("neg", {a.tensor(factor, common)}) : a.tensor(factor, common), x});
}

}  // namespace

Adapt scaled_by_value(std::string op, std::string combine, Promotion promotion) {
  return [=](ForeignArguments& a) -> Values {
    std::vector<ir::ValueId> all{a.value("self"), a.value("tensor1"), a.value("tensor2")};
    if (!a.is_tensor("value")) {
      const ir::Dim* integer = a["value"].as<ir::Dim>();
      return a.call(op, all, {{"value", integer ? ir::Attribute(*integer) : ir::Attribute(a.number("value", 1))}});
    }
    const DType common = a.promoted(all, promotion), computed = is_reduced_float(common) ? DType::f32 : common;
    const ir::ValueId value = weak_number(a, "value", computed, all);
    a.convert(all, computed);
    const ir::ValueId scaled = a.one("mul", {value, all[1]});
    const ir::ValueId sum = combine == "mul" && is_float(common) ? a.one("fma", {scaled, all[2], all[0]}) : a.one("add", {all[0], a.one(combine, {scaled, all[2]})});
    return {a.builder().cast(sum, common)};
  };
}

Adapt alpha_of(std::string op) {
  return [op](ForeignArguments& a) { return with_alpha(a, op); };
}

}  // namespace tenon::ops
