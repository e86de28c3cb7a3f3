#include "python/recording/numbers/computed_numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/ops/build/checked.h"
#include "core/ops/foreign/promotion.h"
#include "python/library/torch_library.h"
#include "python/objects/graph_break.h"
#include "python/recording/numbers/number_stand_ins.h"
#include "python/symbols/symbolic_int.h"

namespace tenon::python {

std::optional<double> plain_float(PyObject* object) {
  if (PyFloat_CheckExact(object)) return PyFloat_AS_DOUBLE(object);
  int overflow = 0;
  const long long value = PyLong_CheckExact(object) ? PyLong_AsLongLongAndOverflow(object, &overflow) : kMostExactInFloats + 1;
  return overflow || value > kMostExactInFloats || value < -kMostExactInFloats ? std::nullopt : std::optional(static_cast<double>(value));
}

Ref ComputedNumbers::made(ScalarValue value, const char* module, const char* function, const Ref& args) {
  const bool integral = value.integral;
  Ref made = make_symbolic_scalar(std::move(value));
  trace_.add_number(module, function, args, made, integral);
  return made;
}

ir::ValueId ComputedNumbers::where_finite(ir::ValueId number) {
  return ops::number_where(builder_, number, builder_.one("isfinite", {number}));
}

std::optional<NumberBounds::Bounds> ComputedNumbers::bounds_of(PyObject* number) const {
  if (is_symbolic_scalar(number)) return scalar_of(number).integral && !scalar_of(number).step ? bounds_.of(scalar_of(number).value) : std::nullopt;
  const std::optional<ir::Dim> integer = integer_of(number);
  return integer ? std::optional(NumberBounds::Bounds{*integer, *integer}) : std::nullopt;
}

std::optional<ir::ValueId> ComputedNumbers::bounded_int(PyObject* number, std::int64_t most, ScalarValue& result) {
  using Operator = ir::Relation::Operator;
  if (is_symbolic_int(number)) {
    const ir::Dim integer = *integer_of(number);
    if (!symbols_.decide(Operator::less_equal, integer, most) || !symbols_.decide(Operator::less_equal, -most, integer)) return std::nullopt;
    for (std::string& name : symbols_.names_of(integer)) result.roots.push_back(std::move(name));
    return builder_.literal(integer);
  }
  if (!is_symbolic_scalar(number)) {
    int overflow = 0;
    const long long plain = PyLong_AsLongLongAndOverflow(number, &overflow);
    return overflow || plain > most || plain < -most ? std::nullopt : std::optional(builder_.literal(ir::Dim(plain)));
  }
  const ScalarValue& scalar = scalar_of(number);
  const ir::ValueId value = value_of(scalar);
  result.of_data |= scalar.of_data;
  for (const std::string& root : scalar.roots) result.roots.push_back(root);
  if (const auto bounds = bounds_of(number); bounds && bounds_.are_within(*bounds, most)) return value;
  if (!assumptions_.allowed()) return std::nullopt;
  const ir::ValueId below = builder_.one("le", {value, builder_.literal(ir::Dim(most))}), above = builder_.one("ge", {value, builder_.literal(ir::Dim(-most))});
  assumptions_.add(builder_.one("logical_and", {below, above}));
  return value;
}

ir::ValueId ComputedNumbers::scalar_operand(PyObject* object, ScalarValue& result) {
  const ScalarValue& scalar = scalar_of(object);
  if (scalar.integral) need_scalar(symbols_, scalar, "arithmetic");  // ints have no limit
  for (const std::string& root : scalar.roots)
    if (std::ranges::find(result.roots, root) == result.roots.end()) result.roots.push_back(root);
  result.of_data |= scalar.of_data;
  return value_of(scalar);
}

ir::ValueId ComputedNumbers::float_operand(PyObject* object, ScalarValue& result) {
  if (is_symbolic_scalar(object)) return scalar_operand(object, result);
  const auto number = is_symbolic_int(object) ? std::nullopt : plain_float(object);
  if (!number && !(is_symbolic_int(object) && symbols_.is_exact_in_floats(*integer_of(object)))) throw GraphBreak("arithmetic of floats with a large integer");
  if (!number)
    for (std::string& name : symbols_.names_of(*integer_of(object))) result.roots.push_back(std::move(name));
  const ir::ValueId literal = number ? builder_.literal(*number) : builder_.literal(*integer_of(object));
  return builder_.one("full", {literal}, {{"size", ir::Shape{}}, {"dtype", DType::f64}});
}

DType ComputedNumbers::common_type(const ScalarValue& scalar, ops::Flavour flavour, std::span<const Index> tensors) const {
  std::vector<ops::PromotionOperand> operands;
  for (Index index : tensors) operands.push_back({stand_ins_[index].dtype, false, stand_ins_[index].shape.empty()});
  operands.push_back({scalar.integral ? DType::i64 : DType::f64, true, true});
  const TorchLibrary* torch = known_torch_library();
  const DType default_float = torch ? torch->dtype_of_scalar_type(static_cast<std::uint8_t>(state_.default_dtype)).value_or(DType::f32) : DType::f32;
  return ops::promote(flavour, operands, default_float);
}

ir::ValueId ComputedNumbers::weak_operand(const ScalarValue& scalar, ops::Flavour flavour, std::span<const Index> tensors) {
  if (tensors.empty() && symbols_.may_library()) throw GraphBreak("an operation of numbers alone, which the library makes itself");
  if (tensors.empty()) need_scalar(symbols_, scalar, "an operation without tensors");
  const DType common = common_type(scalar, flavour, tensors);
  // In narrower types eager execution keeps the number's own precision, or refuses numbers that do not fit.
  const bool wide = common == DType::f32 || common == DType::f64 || common == DType::i64;
  if (!wide) need_scalar(symbols_, scalar, fmt::format("an operation in {}", name_of(common)).c_str());
  return builder_.cast(value_of(scalar), common);
}

std::optional<bool> ComputedNumbers::assumed_comparison(int operation, PyObject* a, PyObject* b) {
  if (!assumptions_.expected()) return std::nullopt;
  const auto is_int = [](PyObject* number) { return is_symbolic_scalar(number) && scalar_of(number).integral; };
  ScalarValue result;
  const auto integer = [&](PyObject* number) -> std::optional<ir::ValueId> {
    if (is_int(number)) return value_of(scalar_of(number));
    int overflow = 0;
    const long long plain = PyLong_CheckExact(number) ? PyLong_AsLongLongAndOverflow(number, &overflow) : 0;
    return PyLong_CheckExact(number) && overflow == 0 ? std::optional(builder_.literal(ir::Dim(plain))) : std::nullopt;
  };
  const bool of_ints = is_int(a) || is_int(b);
  const auto operand = [&](PyObject* number) { return of_ints ? integer(number) : std::optional(float_operand(number, result)); };
  const auto x = operand(a), y = operand(b);
  if (!x || !y) return std::nullopt;
  static constexpr const char* kOps[] = {"lt", "le", "eq", "ne", "gt", "ge"};  // by Py_LT to Py_GE
  return assumptions_.assume_expected(builder_.one(kOps[operation], {*x, *y}));
}

std::optional<bool> ComputedNumbers::assumed_answer(std::string_view question, PyObject* number) {
  const bool known = question == "isnan" || question == "isinf" || question == "isfinite";
  if (!known || !assumptions_.expected() || !is_symbolic_scalar(number) || scalar_of(number).integral) return std::nullopt;
  return assumptions_.assume_expected(builder_.one(std::string(question), {value_of(scalar_of(number))}));
}

}  // namespace tenon::python
