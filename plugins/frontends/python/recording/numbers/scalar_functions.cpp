#include "python/recording/numbers/scalar_functions.h"

#include <algorithm>
#include <cmath>

#include "python/foreign/math_functions.h"
#include "python/symbols/symbolic_int.h"

namespace tenon::python {


/// min() or max() of ints; nothing where the graph computes one of them.
Ref ScalarFunctions::extreme_of_ints(PyObject* args, bool least) {
  std::optional<ir::Dim> best;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
    const std::optional<ir::Dim> next = integer_of(PyTuple_GET_ITEM(args, i));
    if (!next || !core_.symbols.is_known(*next)) return {};
    best = best ? core_.symbols.extreme(*best, *next, least) : *next;
  }
  return make_integer(*best);
}

/// min() or max() of floats: of equal ones, and beside nan, the first.
Ref ScalarFunctions::extreme_of_floats(PyObject* args, bool least) {
  Ref best = Ref::borrow(PyTuple_GET_ITEM(args, 0));
  for (Py_ssize_t i = 1; i < PyTuple_GET_SIZE(args); ++i) {
    PyObject* next = PyTuple_GET_ITEM(args, i);
    std::vector<std::string> roots;
    const auto left = core_.alone ? std::nullopt : floats_.step_of(best.get(), roots), right = left ? floats_.step_of(next, roots) : std::nullopt;
    if (right) {
      const FloatTape& floats = core_.symbols.floats();
      std::string words = words_of_step(least ? "min" : "max", floats.words(*left), ", ", floats.words(*right));
      best = floats_.add({.op = least ? FloatTape::Op::least : FloatTape::Op::greatest, .left = *left, .right = *right, .words = std::move(words)}, std::move(roots));
      continue;
    }
    ScalarValue result;
    const ir::ValueId now = computed_.float_operand(best.get(), result), other = computed_.float_operand(next, result);
    result.value = core_.builder.one("where", {core_.builder.one(least ? "lt" : "gt", {other, now}), other, now});
    best = computed_.made(std::move(result), "builtins", least ? "min" : "max", checked(PyTuple_Pack(2, best.get(), next)));
  }
  return best;
}

Ref ScalarFunctions::call(PyObject* callable, PyObject* args) {
  PyObject* argument = PyTuple_GET_SIZE(args) == 1 ? PyTuple_GET_ITEM(args, 0) : nullptr;
  Ref name = checked(PyObject_GetAttrString(callable, "__name__"));
  const std::string_view called = PyUnicode_AsUTF8(name.get());
  if (called == "min" || called == "max") {
    PyObject* first = PyTuple_GET_ITEM(args, 0);
    if (PyFloat_Check(first) || (is_symbolic_scalar(first) && !scalar_of(first).integral)) return extreme_of_floats(args, called == "min");
    Ref made = extreme_of_ints(args, called == "min");
    return made ? std::move(made) : checked(PyObject_CallObject(callable, args));
  }
  if (called == "isqrt" && argument && is_symbolic_int(argument)) {
    // The root in float64 is rounded to no other whole number below 2**52; of the last few ints, and of negative ones, Python is asked.
    const auto root = [](double square) { return square < 0x1p52 ? std::floor(std::sqrt(square)) : std::nan(""); };
    if (const auto whole = core_.symbols.whole_of(*integer_of(argument), "isqrt", root)) return make_integer(*whole);
  }
  const MathFunction* function = math_function(called);
  if (const auto assumed = argument && is_symbolic_scalar(argument) && !scalar_of(argument).step ? computed_.assumed_answer(called, argument) : std::nullopt)
    return Ref::borrow(*assumed ? Py_True : Py_False);
  if (!function || !argument)
    if (Ref made = floats_.call(callable, called, args)) return made;
  if (!argument || !function || !(is_symbolic_scalar(argument) || is_symbolic_int(argument))) return checked(PyObject_CallObject(callable, args));
  ScalarValue result;
  if (const auto step = core_.alone ? std::nullopt : floats_.step_of(argument, result.roots)) {
    std::string words = words_of_step(called, core_.symbols.floats().words(*step), "", "");
    Ref made = floats_.add({.op = FloatTape::Op::function, .left = *step, .function = function->compute, .words = std::move(words)}, std::move(result.roots));
    return made ? std::move(made) : checked(PyObject_CallObject(callable, args));
  }
  if (!is_symbolic_scalar(argument)) return checked(PyObject_CallObject(callable, args));
  const ir::ValueId x = computed_.scalar_operand(argument, result);
  result.value = computed_.where_finite(core_.builder.one(function->op, {x}));
  return computed_.made(std::move(result), "math", std::string(called).c_str(), Ref::borrow(args));
}

}  // namespace tenon::python
