#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>

#include "python/foreign/math_functions.h"
#include "python/objects/imported.h"
#include "python/recording/tensor_recorder.h"
#include "python/stand_ins/symbolic_scalar.h"
#include "python/symbols/symbolic_int.h"

// Floats that vary: computed before the graph runs, inputs of the graph where tensors meet them.

namespace tenon::python {
namespace {

constexpr std::string_view kSigns[] = {"+", "-", "*", "/", "//", "%", "**"};

/// Words of a step over others; short ones, since those of steps over steps double.
std::string words_of_step(std::string_view before, const std::string& left, std::string_view between, const std::string& right) {
  constexpr std::size_t kMostLetters = 80;
  if (left.size() + right.size() > kMostLetters) return "a float";
  return std::string(before) + "(" + left + std::string(between) + right + ")";
}

}  // namespace

/// A float that may vary.
Ref TensorRecorder::float_input(PyObject* object, SourceId source, GuardSet& guards) {
  if (core_.alone) return {};
  const std::string name = inputs_.words_of(source, guards);
  const double value = PyFloat_AS_DOUBLE(object);
  std::int64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  if (guards.sources()[source].kind == SourceKind::chosen_item) symbols_.vary(name, bits);
  if (!symbols_.varies(name, bits, guards.sources()[source].kind == SourceKind::argument)) return {};
  if (const auto known = floats_.find(source.value); known != floats_.end()) return known->second;
  guards.add(GuardKind::type_is, source, reinterpret_cast<PyObject*>(&PyFloat_Type));
  const auto step = symbols_.float_step({.op = FloatTape::Op::read, .source = source, .words = name}, value);
  return floats_.emplace(source.value, make_symbolic_scalar({.roots = {name}, .step = step})).first->second;
}

/// The step that gives a number as a float; none where the graph computes it, or no float is it.
std::optional<FloatTape::Position> TensorRecorder::step_of(PyObject* number, std::vector<std::string>& roots) {
  if (is_symbolic_scalar(number)) {
    for (const std::string& root : scalar_of(number).roots)
      if (std::ranges::find(roots, root) == roots.end()) roots.push_back(root);
    return scalar_of(number).step;
  }
  if (PyFloat_CheckExact(number)) return symbols_.float_step({.number = PyFloat_AS_DOUBLE(number), .words = fmt::format("{}", PyFloat_AS_DOUBLE(number))});
  const std::optional<ir::Dim> integer = integer_of(number);
  if (!integer) return std::nullopt;
  for (std::string& name : symbols_.names_of(*integer)) roots.push_back(std::move(name));
  return symbols_.as_float(*integer);
}

Ref TensorRecorder::on_tape(FloatTape::Step step, std::vector<std::string> roots) {
  const auto position = symbols_.float_step(std::move(step));
  return position ? make_symbolic_scalar({.roots = std::move(roots), .step = position}) : Ref();
}

/// Nothing where the graph computes one of them, or Python gives no float.
Ref TensorRecorder::tape_arithmetic(FloatTape::Op op, PyObject* a, PyObject* b) {
  if (core_.alone) return {};
  std::vector<std::string> roots;
  const auto left = step_of(a, roots), right = step_of(b, roots);
  if (!left || !right) return {};
  const FloatTape& floats = symbols_.floats();
  const std::string_view sign = kSigns[static_cast<std::size_t>(op) - static_cast<std::size_t>(FloatTape::Op::add)];
  std::string words = words_of_step("", floats.words(*left), sign, floats.words(*right));
  return on_tape({.op = op, .left = *left, .right = *right, .words = std::move(words)}, std::move(roots));
}

/// The graph's value of a float that is computed before it runs.
ir::ValueId TensorRecorder::input_of(FloatTape::Position step) {
  if (const auto known = step_inputs_.find(step); known != step_inputs_.end()) return known->second;
  return step_inputs_[step] = inputs_.add_float(step);
}

bool TensorRecorder::scalar_comparison(int operation, PyObject* a, PyObject* b) {
  std::vector<std::string> roots;
  const auto left = core_.alone ? std::nullopt : step_of(a, roots), right = left ? step_of(b, roots) : std::nullopt;
  if (!right)
    if (const auto assumed = assumed_comparison(operation, a, b)) return *assumed;
  if (!right) need_scalar(scalar_of(is_symbolic_scalar(a) && !scalar_of(a).step ? a : is_symbolic_scalar(b) ? b : a), "a comparison");
  return symbols_.floats().compare(FloatTape::comparison_of(operation), *left, *right);
}

Ref TensorRecorder::scalar_magnitude(PyObject* a) {
  const ScalarValue& scalar = scalar_of(a);
  if (!scalar.step) {
    if (!scalar.of_data || scalar.integral) need_scalar(scalar, "abs()");
    ScalarValue result;
    const ir::ValueId x = scalar_operand(a, result);
    result.value = builder_.one("abs", {x});
    return computed_number(std::move(result), "builtins", "abs", checked(PyTuple_Pack(1, a)));
  }
  std::string words = words_of_step("abs", symbols_.floats().words(*scalar.step), "", "");
  return on_tape({.op = FloatTape::Op::function, .left = *scalar.step, .function = std::fabs, .words = std::move(words)}, scalar.roots);
}

/// int(), round(), or a function of the module math that gives an int.
Ref TensorRecorder::whole_number(PyObject* number, std::string_view function) {
  const ScalarValue& scalar = scalar_of(number);
  const std::pair<std::string_view, double (*)(double)> known[] = {{"floor", std::floor}, {"ceil", std::ceil}, {"trunc", std::trunc}, {"round", std::nearbyint}};
  if (!scalar.step) need_scalar(scalar, "the next int");
  std::string words = words_of_step(function, symbols_.floats().words(*scalar.step), "", "");
  const auto* found = std::ranges::find(known, function, &std::pair<std::string_view, double (*)(double)>::first);
  const auto step = symbols_.float_step({.op = FloatTape::Op::function, .left = *scalar.step, .function = found->second, .words = std::move(words)});
  const std::optional<ir::Dim> whole = step ? symbols_.whole(*step) : std::nullopt;
  if (!whole) need_scalar(scalar, "the next int");
  return make_integer(*whole);
}

/// min() or max() of ints; nothing where the graph computes one of them.
Ref TensorRecorder::extreme_of_ints(PyObject* args, bool least) {
  std::optional<ir::Dim> best;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
    const std::optional<ir::Dim> next = integer_of(PyTuple_GET_ITEM(args, i));
    if (!next || !symbols_.is_known(*next)) return {};
    best = best ? symbols_.extreme(*best, *next, least) : *next;
  }
  return make_integer(*best);
}

/// min() or max() of floats: of equal ones, and beside nan, the first.
Ref TensorRecorder::scalar_extreme(PyObject* args, bool least) {
  Ref best = Ref::borrow(PyTuple_GET_ITEM(args, 0));
  for (Py_ssize_t i = 1; i < PyTuple_GET_SIZE(args); ++i) {
    PyObject* next = PyTuple_GET_ITEM(args, i);
    std::vector<std::string> roots;
    const auto left = core_.alone ? std::nullopt : step_of(best.get(), roots), right = left ? step_of(next, roots) : std::nullopt;
    if (right) {
      const FloatTape& floats = symbols_.floats();
      std::string words = words_of_step(least ? "min" : "max", floats.words(*left), ", ", floats.words(*right));
      best = on_tape({.op = least ? FloatTape::Op::least : FloatTape::Op::greatest, .left = *left, .right = *right, .words = std::move(words)}, std::move(roots));
      continue;
    }
    ScalarValue result;
    const ir::ValueId now = float_operand(best.get(), result), other = float_operand(next, result);
    result.value = builder_.one("where", {builder_.one(least ? "lt" : "gt", {other, now}), other, now});
    best = computed_number(std::move(result), "builtins", least ? "min" : "max", checked(PyTuple_Pack(2, best.get(), next)));
  }
  return best;
}

/// A function of the module math that Python itself computes before the graph runs; nothing where it must be done with the values.
Ref TensorRecorder::call_on_tape(PyObject* callable, std::string_view name, PyObject* args) {
  const Py_ssize_t count = PyTuple_GET_SIZE(args);
  if (core_.alone || count < 1 || count > 2 || !computes_before_the_graph(name)) return {};
  std::vector<std::string> roots;
  std::optional<FloatTape::Position> steps[2] = {0, 0};
  for (Py_ssize_t i = 0; i < count; ++i)
    if (!(steps[i] = step_of(PyTuple_GET_ITEM(args, i), roots))) return {};
  const FloatTape& floats = symbols_.floats();
  std::string words = words_of_step(name, floats.words(*steps[0]), count == 2 ? ", " : "", count == 2 ? floats.words(*steps[1]) : "");
  const auto step = symbols_.float_step({.op = FloatTape::Op::call, .left = *steps[0], .right = *steps[1], .callable = Ref::borrow(callable), .binary = count == 2, .words = std::move(words)});
  if (!step) return {};
  if (!name.starts_with("is")) return make_symbolic_scalar({.roots = std::move(roots), .step = step});
  const auto zero = symbols_.float_step({.words = "0.0"});
  return Ref::borrow(symbols_.floats().compare(FloatTape::Comparison::not_equal, *step, *zero) ? Py_True : Py_False);
}

/// round() to digits: computed before the graph runs, or made when it has run, as a float that only leaves the call.
Ref TensorRecorder::rounded(PyObject* number, PyObject* digits) {
  const ScalarValue& scalar = scalar_of(number);
  Ref round = checked(PyObject_GetAttrString(checked(imported("builtins")).get(), "round"));
  const bool plain = PyLong_CheckExact(digits) && !scalar.integral && !core_.alone;
  if (plain && scalar.step) {
    Ref partial = checked(PyObject_GetAttrString(checked(imported("functools")).get(), "partial"));
    Ref keywords = checked(Py_BuildValue("{sO}", "ndigits", digits));
    Ref callable = checked(PyObject_Call(partial.get(), checked(PyTuple_Pack(1, round.get())).get(), keywords.get()));
    std::string words = words_of_step("round", symbols_.floats().words(*scalar.step), ", ", std::to_string(PyLong_AsLong(digits)));
    PyErr_Clear();
    if (Ref made = on_tape({.op = FloatTape::Op::call, .left = *scalar.step, .callable = std::move(callable), .words = std::move(words)}, scalar.roots)) return made;
  }
  if (plain && !scalar.step)
    if (Ref late = late_text(round.get(), checked(PyTuple_Pack(2, number, digits)).get())) return late;
  need_scalar(scalar, "round() to digits");
}

/// A function of the module math, of a float that varies.
Ref TensorRecorder::scalar_function(PyObject* callable, PyObject* args) {
  PyObject* argument = PyTuple_GET_SIZE(args) == 1 ? PyTuple_GET_ITEM(args, 0) : nullptr;
  Ref name = checked(PyObject_GetAttrString(callable, "__name__"));
  const std::string_view called = PyUnicode_AsUTF8(name.get());
  if (called == "min" || called == "max") {
    PyObject* first = PyTuple_GET_ITEM(args, 0);
    if (PyFloat_Check(first) || (is_symbolic_scalar(first) && !scalar_of(first).integral)) return scalar_extreme(args, called == "min");
    Ref made = extreme_of_ints(args, called == "min");
    return made ? std::move(made) : checked(PyObject_CallObject(callable, args));
  }
  if (called == "isqrt" && argument && is_symbolic_int(argument)) {
    // The root in float64 is rounded to no other whole number below 2**52; of the last few ints, and of negative ones, Python is asked.
    const auto root = [](double square) { return square < 0x1p52 ? std::floor(std::sqrt(square)) : std::nan(""); };
    if (const auto whole = symbols_.whole_of(*integer_of(argument), "isqrt", root)) return make_integer(*whole);
  }
  const MathFunction* function = math_function(called);
  if (const auto assumed = argument && is_symbolic_scalar(argument) && !scalar_of(argument).step ? assumed_answer(called, argument) : std::nullopt)
    return Ref::borrow(*assumed ? Py_True : Py_False);
  if (!function || !argument)
    if (Ref made = call_on_tape(callable, called, args)) return made;
  if (!argument || !function || !(is_symbolic_scalar(argument) || is_symbolic_int(argument))) return checked(PyObject_CallObject(callable, args));
  ScalarValue result;
  if (const auto step = core_.alone ? std::nullopt : step_of(argument, result.roots)) {
    std::string words = words_of_step(called, symbols_.floats().words(*step), "", "");
    Ref made = on_tape({.op = FloatTape::Op::function, .left = *step, .function = function->compute, .words = std::move(words)}, std::move(result.roots));
    return made ? std::move(made) : checked(PyObject_CallObject(callable, args));
  }
  if (!is_symbolic_scalar(argument)) return checked(PyObject_CallObject(callable, args));
  const ir::ValueId x = scalar_operand(argument, result);
  result.value = where_finite(builder_.one(function->op, {x}));
  return computed_number(std::move(result), "math", std::string(called).c_str(), Ref::borrow(args));
}

}  // namespace tenon::python
