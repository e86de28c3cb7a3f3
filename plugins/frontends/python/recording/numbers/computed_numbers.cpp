#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "core/ops/build/checked.h"
#include "core/ops/foreign/promotion.h"
#include "python/heap/type_traits.h"
#include "python/library/torch_library.h"
#include "python/objects/imported.h"
#include "python/opaque/call_results.h"
#include "python/recording/tensor_recorder.h"
#include "python/stand_ins/array_stand_in.h"
#include "python/stand_ins/late_text.h"
#include "python/stand_ins/symbolic_scalar.h"
#include "python/symbols/symbolic_int.h"

// Numbers that the graph computes: those born of tensors, and floats of a graph that is for use without its guards.

namespace tenon::python {
namespace {

/// A float, or an int that float64 holds exactly.
std::optional<double> plain_float(PyObject* object) {
  if (PyFloat_CheckExact(object)) return PyFloat_AS_DOUBLE(object);
  int overflow = 0;
  const long long value = PyLong_CheckExact(object) ? PyLong_AsLongLongAndOverflow(object, &overflow) : kMostExactInFloats + 1;
  return overflow || value > kMostExactInFloats || value < -kMostExactInFloats ? std::nullopt : std::optional(static_cast<double>(value));
}

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

/// A number that the graph computes, traced as the call of Python that gives it.
Ref TensorRecorder::computed_number(ScalarValue value, const char* module, const char* function, const Ref& args) {
  const bool integral = value.integral;
  Ref made = make_symbolic_scalar(std::move(value));
  trace_.add_number(module, function, args, made, integral);
  return made;
}

/// Where Python's functions of floats give infinity or nan they may have to raise: such numbers are for them.
ir::ValueId TensorRecorder::where_finite(ir::ValueId number) {
  const ir::ValueId size = builder_.one("abs", {number});
  return ops::number_where(builder_, number, builder_.one("le", {size, builder_.literal(std::numeric_limits<double>::max())}));
}

void TensorRecorder::need_scalar(const ScalarValue& scalar, const char* use) {
  if (!scalar.of_data && !symbols_.wear_out(scalar.roots))
    for (const std::string& root : scalar.roots) symbols_.fix(root, use);
  throw GraphBreak(fmt::format("{} of a number that the graph computes needs its value while the program runs", use),
                   "keep the decision in the graph: torch.where, or tenon.cond");
}

/// An int of no more than this size either way, as a value of int64: of one that the graph computes, that is assumed. Nothing where it may not be.
std::optional<ir::ValueId> TensorRecorder::bounded_int(PyObject* number, std::int64_t most, ScalarValue& result) {
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
  if (!assumptions_.allowed()) return std::nullopt;
  const ScalarValue& scalar = scalar_of(number);
  const ir::ValueId value = value_of_scalar(scalar);
  const ir::ValueId below = builder_.one("le", {value, builder_.literal(ir::Dim(most))}), above = builder_.one("ge", {value, builder_.literal(ir::Dim(-most))});
  assumptions_.add(builder_.one("logical_and", {below, above}));
  result.of_data |= scalar.of_data;
  for (const std::string& root : scalar.roots) result.roots.push_back(root);
  return value;
}

ir::ValueId TensorRecorder::scalar_operand(PyObject* object, ScalarValue& result) {
  const ScalarValue& scalar = scalar_of(object);
  if (scalar.integral) need_scalar(scalar, "arithmetic");  // ints have no limit
  for (const std::string& root : scalar.roots)
    if (std::ranges::find(result.roots, root) == result.roots.end()) result.roots.push_back(root);
  result.of_data |= scalar.of_data;
  return value_of_scalar(scalar);
}

/// A float, an int, or one that the graph knows when it runs, as a 0-d value of float64.
ir::ValueId TensorRecorder::float_operand(PyObject* object, ScalarValue& result) {
  if (is_symbolic_scalar(object)) return scalar_operand(object, result);
  const auto number = is_symbolic_int(object) ? std::nullopt : plain_float(object);
  if (!number && !(is_symbolic_int(object) && symbols_.is_exact_in_floats(*integer_of(object)))) throw GraphBreak("arithmetic of floats with a large integer");
  if (!number)
    for (std::string& name : symbols_.names_of(*integer_of(object))) result.roots.push_back(std::move(name));
  const ir::ValueId literal = number ? builder_.literal(*number) : builder_.literal(*integer_of(object));
  return builder_.one("full", {literal}, {{"size", ir::Shape{}}, {"dtype", DType::f64}});
}

Ref TensorRecorder::float_arithmetic(FloatTape::Op op, PyObject* a, PyObject* b) {
  if (!core_.alone) return tape_arithmetic(op, a, b);
  const Arithmetic arithmetic = arithmetic_of(op);
  if (!arithmetic.op) return {};
  for (PyObject* operand : {a, b})
    if (is_symbolic_int(operand) ? !symbols_.is_exact_in_floats(*integer_of(operand)) : !plain_float(operand)) return {};
  const bool divides = op == FloatTape::Op::divide;
  if (divides && (is_symbolic_int(b) ? !symbols_.decide(ir::Relation::Operator::not_equal, *integer_of(b), 0) : *plain_float(b) == 0)) return {};
  ScalarValue result;
  const ir::ValueId x = float_operand(a, result), y = float_operand(b, result);
  result.value = builder_.one(arithmetic.op, {x, y});
  if (op == FloatTape::Op::power) result.value = where_finite(result.value);
  return computed_number(std::move(result), "operator", arithmetic.function, pair_of(a, b));
}

Ref TensorRecorder::scalar_arithmetic(FloatTape::Op op, PyObject* a, PyObject* b) {
  if (Ref made = tape_arithmetic(op, a, b)) return made;
  const Arithmetic arithmetic = arithmetic_of(op);
  if (!arithmetic.op) need_scalar(scalar_of(is_symbolic_scalar(a) ? a : b), "arithmetic");
  const auto of_data = [](PyObject* number) { return is_symbolic_scalar(number) && scalar_of(number).of_data; };
  if (!core_.alone && !of_data(a) && !of_data(b)) need_scalar(scalar_of(is_symbolic_scalar(a) ? a : b), "arithmetic that gives no float");
  ScalarValue result;
  const auto is_computed_int = [](PyObject* number) { return is_symbolic_scalar(number) && scalar_of(number).integral; };
  const auto is_int = [&](PyObject* number) { return is_computed_int(number) || is_symbolic_int(number) || PyLong_CheckExact(number); };
  if (is_int(a) && is_int(b) && op != FloatTape::Op::divide) {
    constexpr std::int64_t kMost = std::int64_t{1} << 31;  // no result exceeds int64
    const bool stays = op != FloatTape::Op::power;
    const auto x = stays ? bounded_int(a, kMost, result) : std::nullopt, y = x ? bounded_int(b, kMost, result) : std::nullopt;
    if (!y) need_scalar(scalar_of(is_symbolic_scalar(a) ? a : b), "arithmetic");
    result.integral = true;
    result.value = builder_.one(arithmetic.op, {*x, *y});
    return computed_number(std::move(result), "operator", arithmetic.function, pair_of(a, b));
  }
  const auto operand = [&](PyObject* object) {
    if (is_computed_int(object))
      if (const auto exact = bounded_int(object, kMostExactInFloats, result)) return builder_.cast(*exact, DType::f64);
    if (is_symbolic_int(object) && symbols_.is_exact_in_floats(*integer_of(object))) return float_operand(object, result);
    if (!is_symbolic_scalar(object)) {
      const auto number = plain_float(object);
      if (!number) need_scalar(scalar_of(object == a ? b : a), "arithmetic with such an integer");
      return builder_.literal(*number);
    }
    return scalar_operand(object, result);
  };
  const bool divides = op == FloatTape::Op::divide;
  const bool by_integer = is_symbolic_int(b) && symbols_.is_exact_in_floats(*integer_of(b)) && symbols_.decide(ir::Relation::Operator::not_equal, *integer_of(b), 0);
  if (divides && !is_symbolic_scalar(b) && !by_integer && plain_float(b).value_or(0) == 0) need_scalar(scalar_of(a), "a division by zero");
  const ir::ValueId x = operand(a), y = divides && is_symbolic_scalar(b) ? nonzero(builder_, operand(b)) : operand(b);
  result.value = builder_.one(arithmetic.op, {x, y});
  if (op == FloatTape::Op::power) result.value = where_finite(result.value);
  return computed_number(std::move(result), "operator", arithmetic.function, pair_of(a, b));
}

Ref TensorRecorder::constant_operator(binaryfunc operation, PyObject* left, PyObject* right) {
  const auto call = [&] { return checked(operation(left, right)); };
  return is_scalar_of_numpy(left) || is_scalar_of_numpy(right) ? call_for_good(call, core_.error_handlings.now()) : call();
}

/// `item()`, `float()`, `int()` of a number, or of a tensor or array of one element, where Python's number is the element itself.
Ref TensorRecorder::number_of(PyObject* stand_in, PyTypeObject* type) {
  if (const auto index = type ? stand_ins_.find(stand_in) : std::nullopt)
    if (Ref known = known_.value(*index)) return checked(PyObject_CallOneArg(as_object(type), known.get()));
  if (is_late_text(stand_in) && late_text_of(stand_in).type == type) return Ref::borrow(stand_in);
  if (!symbols_.dynamic()) return {};
  if (is_symbolic_int(stand_in) || is_symbolic_scalar(stand_in)) {
    if (apparent_type(stand_in) == type) return Ref::borrow(stand_in);
    return type == &PyFloat_Type ? checked(PyNumber_TrueDivide(stand_in, checked(PyLong_FromLong(1)).get())) : whole_number(stand_in, "trunc");
  }
  const Index index = stand_ins_.require(stand_in);
  const StandIn& s = stand_ins_[index];
  const ir::ValueId value = present_.of(index);
  if (s.kind != TensorKind::torch && !s.shape.empty()) return {};  // which NumPy refuses, or warns of
  const bool one = std::ranges::all_of(graph_.type(value).shape, [](const ir::Dim& d) { return d == ir::Dim(1); });
  const bool integral = !is_float(s.dtype);
  if (!one || is_bool(s.dtype) || is_complex(s.dtype) || (type == &PyLong_Type && !integral)) return {};
  const bool as_int = integral && type != &PyFloat_Type;
  const ir::ValueId element = graph_.type(value).shape.empty() ? value : builder_.one("reshape", {value}, {{"shape", ir::Shape{}}});
  ScalarValue number{.value = builder_.cast(element, as_int ? DType::i64 : DType::f64), .integral = as_int, .of_data = true};
  return computed_number(std::move(number), "builtins", as_int ? "int" : "float", checked(PyTuple_Pack(1, stand_in)));
}

/// The scalar as an operand: weak in promotion, so it takes the dtype that the tensors beside it decide.
ir::ValueId TensorRecorder::weak_operand(const ScalarValue& scalar, ops::Flavour flavour, std::span<const Index> tensors) {
  std::vector<ops::PromotionOperand> operands;
  for (Index index : tensors) operands.push_back({stand_ins_[index].dtype, false, stand_ins_[index].shape.empty()});
  if (operands.empty() && symbols_.may_library()) throw GraphBreak("an operation of numbers alone, which the library makes itself");
  if (operands.empty()) need_scalar(scalar, "an operation without tensors");
  operands.push_back({scalar.integral ? DType::i64 : DType::f64, true, true});
  const TorchLibrary* torch = known_torch_library();
  const DType default_float = torch ? torch->dtype_of_scalar_type(static_cast<std::uint8_t>(core_.state.default_dtype)).value_or(DType::f32) : DType::f32;
  const DType common = ops::promote(flavour, operands, default_float);
  // In narrower types eager execution keeps the number's own precision, or refuses numbers that do not fit.
  const bool wide = common == DType::f32 || common == DType::f64 || common == DType::i64;
  if (!wide) need_scalar(scalar, fmt::format("an operation in {}", name_of(common)).c_str());
  return builder_.cast(value_of_scalar(scalar), common);
}

std::uint32_t TensorRecorder::scalar_output(const ScalarValue& scalar, PyObject* object, CapturedGraph& captured) {
  TensorOutput output;
  if (scalar.step) {
    output.kind = TensorOutput::Kind::tape_float;
    output.index = *scalar.step;
    captured.tensors.push_back(std::move(output));
    return static_cast<std::uint32_t>(captured.tensors.size() - 1);
  }
  output.kind = TensorOutput::Kind::fresh;
  output.tensor = TensorKind::scalar;
  output.plain_number = true;
  output.index = static_cast<std::uint32_t>(graph_.outputs().size());
  output.dtype = scalar.integral ? DType::i64 : DType::f64;
  graph_.add_output({scalar.value, ir::OutputKind::result, {}});
  trace_.add_output(object);
  captured.tensors.push_back(std::move(output));
  return static_cast<std::uint32_t>(captured.tensors.size() - 1);
}

/// The outcome of comparing numbers that the graph computes, where the program goes on with one outcome only.
std::optional<bool> TensorRecorder::assumed_comparison(int operation, PyObject* a, PyObject* b) {
  if (!assumptions_.expected()) return std::nullopt;
  const auto is_int = [](PyObject* number) { return is_symbolic_scalar(number) && scalar_of(number).integral; };
  ScalarValue result;
  const auto integer = [&](PyObject* number) -> std::optional<ir::ValueId> {
    if (is_int(number)) return value_of_scalar(scalar_of(number));
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

/// The same for a question of the module math.
std::optional<bool> TensorRecorder::assumed_answer(std::string_view question, PyObject* number) {
  const bool known = question == "isnan" || question == "isinf" || question == "isfinite";
  if (!known || !assumptions_.expected() || !is_symbolic_scalar(number) || scalar_of(number).integral) return std::nullopt;
  return assumptions_.assume_expected(builder_.one(std::string(question), {value_of_scalar(scalar_of(number))}));
}

}  // namespace tenon::python
