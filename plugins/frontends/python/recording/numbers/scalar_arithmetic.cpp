#include "python/recording/numbers/scalar_arithmetic.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/ops/build/checked.h"
#include "python/objects/imported.h"
#include "python/recording/numbers/number_stand_ins.h"
#include "python/symbols/symbolic_int.h"

namespace tenon::python {
namespace {

ir::ValueId nonzero(ops::NodeBuilder& b, ir::ValueId number) { return ops::number_where(b, number, b.one("ne", {number, b.literal(0.0)})); }

/// Arithmetic of floats in the graph, and the function of the module operator that it is; null where the graph has none that is Python's.
struct Arithmetic {
  const char *op = nullptr, *function = nullptr;
};

Arithmetic arithmetic_of(FloatTape::Op op) {
  switch (op) {
    case FloatTape::Op::add: return {"add", "add"};
    case FloatTape::Op::subtract: return {"sub", "sub"};
    case FloatTape::Op::multiply: return {"mul", "mul"};
    case FloatTape::Op::divide: return {"div", "truediv"};
    case FloatTape::Op::power: return {"pow", "pow"};
    default: return {};
  }
}

Ref pair_of(PyObject* a, PyObject* b) { return checked(PyTuple_Pack(2, a, b)); }

}  // namespace

bool ScalarArithmetic::compare(int operation, PyObject* a, PyObject* b) {
  std::vector<std::string> roots;
  const auto left = core_.alone ? std::nullopt : floats_.step_of(a, roots), right = left ? floats_.step_of(b, roots) : std::nullopt;
  const auto one = right ? std::nullopt : computed_.bounds_of(a), other = one ? computed_.bounds_of(b) : std::nullopt;
  if (other)
    if (const auto known = core_.bounds.compare(operation, *one, *other)) return *known;
  if (!right)
    if (const auto assumed = computed_.assumed_comparison(operation, a, b)) return *assumed;
  if (!right) need_scalar(core_.symbols, scalar_of(is_symbolic_scalar(a) && !scalar_of(a).step ? a : is_symbolic_scalar(b) ? b : a), "a comparison");
  return core_.symbols.floats().compare(FloatTape::comparison_of(operation), *left, *right);
}

Ref ScalarArithmetic::magnitude(PyObject* a) {
  const ScalarValue& scalar = scalar_of(a);
  if (!scalar.step) {
    if (!scalar.of_data || scalar.integral) need_scalar(core_.symbols, scalar, "abs()");
    ScalarValue result;
    const ir::ValueId x = computed_.scalar_operand(a, result);
    result.value = core_.builder.one("abs", {x});
    return computed_.made(std::move(result), "builtins", "abs", checked(PyTuple_Pack(1, a)));
  }
  std::string words = words_of_step("abs", core_.symbols.floats().words(*scalar.step), "", "");
  return floats_.add({.op = FloatTape::Op::function, .left = *scalar.step, .function = std::fabs, .words = std::move(words)}, scalar.roots);
}

Ref ScalarArithmetic::whole_number(PyObject* number, std::string_view function) {
  const ScalarValue& scalar = scalar_of(number);
  const std::pair<std::string_view, double (*)(double)> known[] = {{"floor", std::floor}, {"ceil", std::ceil}, {"trunc", std::trunc}, {"round", std::nearbyint}};
  if (!scalar.step) need_scalar(core_.symbols, scalar, "the next int");
  std::string words = words_of_step(function, core_.symbols.floats().words(*scalar.step), "", "");
  const auto* found = std::ranges::find(known, function, &std::pair<std::string_view, double (*)(double)>::first);
  const auto step = core_.symbols.float_step({.op = FloatTape::Op::function, .left = *scalar.step, .function = found->second, .words = std::move(words)});
  const std::optional<ir::Dim> whole = step ? core_.symbols.whole(*step) : std::nullopt;
  if (!whole) need_scalar(core_.symbols, scalar, "the next int");
  return make_integer(*whole);
}

Ref ScalarArithmetic::rounded(PyObject* number, PyObject* digits) {
  const ScalarValue& scalar = scalar_of(number);
  Ref round = checked(PyObject_GetAttrString(checked(imported("builtins")).get(), "round"));
  const bool plain = PyLong_CheckExact(digits) && !scalar.integral && !core_.alone;
  if (plain && scalar.step) {
    Ref partial = checked(PyObject_GetAttrString(checked(imported("functools")).get(), "partial"));
    Ref keywords = checked(Py_BuildValue("{sO}", "ndigits", digits));
    Ref callable = checked(PyObject_Call(partial.get(), checked(PyTuple_Pack(1, round.get())).get(), keywords.get()));
    std::string words = words_of_step("round", core_.symbols.floats().words(*scalar.step), ", ", std::to_string(PyLong_AsLong(digits)));
    PyErr_Clear();
    if (Ref made = floats_.add({.op = FloatTape::Op::call, .left = *scalar.step, .callable = std::move(callable), .words = std::move(words)}, scalar.roots)) return made;
  }
  if (plain && !scalar.step)
    if (Ref late = texts_.made(round.get(), checked(PyTuple_Pack(2, number, digits)).get())) return late;
  need_scalar(core_.symbols, scalar, "round() to digits");
}

Ref ScalarArithmetic::of_ints(FloatTape::Op op, PyObject* a, PyObject* b) {
  if (!core_.alone) return floats_.arithmetic(op, a, b);
  const Arithmetic arithmetic = arithmetic_of(op);
  if (!arithmetic.op) return {};
  for (PyObject* operand : {a, b})
    if (is_symbolic_int(operand) ? !core_.symbols.is_exact_in_floats(*integer_of(operand)) : !plain_float(operand)) return {};
  const bool divides = op == FloatTape::Op::divide;
  if (divides && (is_symbolic_int(b) ? !core_.symbols.decide(ir::Relation::Operator::not_equal, *integer_of(b), 0) : *plain_float(b) == 0)) return {};
  ScalarValue result;
  const ir::ValueId x = computed_.float_operand(a, result), y = computed_.float_operand(b, result);
  result.value = core_.builder.one(arithmetic.op, {x, y});
  if (op == FloatTape::Op::power) result.value = computed_.where_finite(result.value);
  return computed_.made(std::move(result), "operator", arithmetic.function, pair_of(a, b));
}

Ref ScalarArithmetic::of_scalars(FloatTape::Op op, PyObject* a, PyObject* b) {
  if (Ref made = floats_.arithmetic(op, a, b)) return made;
  const Arithmetic arithmetic = arithmetic_of(op);
  if (!arithmetic.op) need_scalar(core_.symbols, scalar_of(is_symbolic_scalar(a) ? a : b), "arithmetic");
  const auto of_data = [](PyObject* number) { return is_symbolic_scalar(number) && scalar_of(number).of_data; };
  if (!core_.alone && !of_data(a) && !of_data(b)) need_scalar(core_.symbols, scalar_of(is_symbolic_scalar(a) ? a : b), "arithmetic that gives no float");
  ScalarValue result;
  const auto is_computed_int = [](PyObject* number) { return is_symbolic_scalar(number) && scalar_of(number).integral; };
  const auto is_int = [&](PyObject* number) { return is_computed_int(number) || is_symbolic_int(number) || PyLong_CheckExact(number); };
  if (is_int(a) && is_int(b) && op != FloatTape::Op::divide) {
    constexpr std::int64_t kMost = std::int64_t{1} << 31;  // no result exceeds int64
    const bool stays = op != FloatTape::Op::power;
    const auto x = stays ? computed_.bounded_int(a, kMost, result) : std::nullopt, y = x ? computed_.bounded_int(b, kMost, result) : std::nullopt;
    if (!y) need_scalar(core_.symbols, scalar_of(is_symbolic_scalar(a) ? a : b), "arithmetic");
    result.integral = true;
    result.value = core_.builder.one(arithmetic.op, {*x, *y});
    const auto left = computed_.bounds_of(a), right = left ? computed_.bounds_of(b) : std::nullopt;
    if (const auto bounds = right ? NumberBounds::of_arithmetic(arithmetic.op, *left, *right) : std::nullopt) core_.bounds.note(result.value, *bounds);
    return computed_.made(std::move(result), "operator", arithmetic.function, pair_of(a, b));
  }
  const auto operand = [&](PyObject* object) {
    if (is_computed_int(object))
      if (const auto exact = computed_.bounded_int(object, kMostExactInFloats, result)) return core_.builder.cast(*exact, DType::f64);
    if (is_symbolic_int(object) && core_.symbols.is_exact_in_floats(*integer_of(object))) return computed_.float_operand(object, result);
    if (!is_symbolic_scalar(object)) {
      const auto number = plain_float(object);
      if (!number) need_scalar(core_.symbols, scalar_of(object == a ? b : a), "arithmetic with such an integer");
      return core_.builder.literal(*number);
    }
    return computed_.scalar_operand(object, result);
  };
  const bool divides = op == FloatTape::Op::divide;
  const bool by_integer = is_symbolic_int(b) && core_.symbols.is_exact_in_floats(*integer_of(b)) && core_.symbols.decide(ir::Relation::Operator::not_equal, *integer_of(b), 0);
  if (divides && !is_symbolic_scalar(b) && !by_integer && plain_float(b).value_or(0) == 0) need_scalar(core_.symbols, scalar_of(a), "a division by zero");
  const ir::ValueId x = operand(a), y = divides && is_symbolic_scalar(b) ? nonzero(core_.builder, operand(b)) : operand(b);
  result.value = core_.builder.one(arithmetic.op, {x, y});
  if (op == FloatTape::Op::power) result.value = computed_.where_finite(result.value);
  return computed_.made(std::move(result), "operator", arithmetic.function, pair_of(a, b));
}

}  // namespace tenon::python
