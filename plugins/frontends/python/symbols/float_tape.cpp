#include "python/symbols/float_tape.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace tenon::python {
namespace {

constexpr std::array kSigns = {"<", "<=", "==", "!=", ">", ">="};

bool same(const FloatTape::Step& a, const FloatTape::Step& b) {
  return a.op == b.op && a.left == b.left && a.right == b.right && std::bit_cast<std::uint64_t>(a.number) == std::bit_cast<std::uint64_t>(b.number) &&
         a.source == b.source && a.integer == b.integer && a.function == b.function && a.callable.get() == b.callable.get() && a.binary == b.binary;
}

/// a % b of floats: with the sign of b.
double remainder_of(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (b < 0) != (rest < 0) ? rest + b : rest;
}

/// a // b of floats: the whole number next to what is left without the remainder.
double floor_of_quotient(double a, double b) {
  double rest = std::fmod(a, b), whole = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) whole -= 1;
  if (whole == 0) return std::copysign(0.0, a / b);
  const double down = std::floor(whole);
  return whole - down > 0.5 ? down + 1 : down;
}

/// Nothing where Python raises, or gives no number.
std::optional<double> called(PyObject* callable, double a, double b, bool binary) {
  Ref left = Ref::steal(PyFloat_FromDouble(a)), right = binary ? Ref::steal(PyFloat_FromDouble(b)) : Ref();
  PyObject* given[] = {left.get(), right.get()};
  Ref result = Ref::steal(PyObject_Vectorcall(callable, given, binary ? 2 : 1, nullptr));
  if (!result) PyErr_Clear();
  if (!result || !(PyFloat_Check(result.get()) || PyBool_Check(result.get()))) return std::nullopt;
  return PyBool_Check(result.get()) ? (result.is(Py_True) ? 1.0 : 0.0) : PyFloat_AS_DOUBLE(result.get());
}

std::optional<double> if_finite(double value) { return std::isfinite(value) ? std::optional(value) : std::nullopt; }

}  // namespace

FloatTape::Comparison FloatTape::comparison_of(int operation) {
  switch (operation) {
    case Py_LT: return Comparison::less;
    case Py_LE: return Comparison::less_equal;
    case Py_EQ: return Comparison::equal;
    case Py_NE: return Comparison::not_equal;
    case Py_GT: return Comparison::greater;
    default: return Comparison::greater_equal;
  }
}

std::optional<double> FloatTape::compute(const Step& step, std::span<const std::int64_t> symbols) const {
  const double a = step.left < values_.size() ? values_[step.left] : 0, b = step.right < values_.size() ? values_[step.right] : 0;
  switch (step.op) {
    case Op::read: break;
    case Op::integer: return static_cast<double>(step.integer.evaluate(symbols));
    case Op::constant: return step.number;
    case Op::add: return a + b;
    case Op::subtract: return a - b;
    case Op::multiply: return a * b;
    case Op::divide: return b == 0 ? std::nullopt : std::optional(a / b);
    case Op::floor_divide: return b == 0 ? std::nullopt : std::optional(floor_of_quotient(a, b));
    case Op::remainder: return b == 0 ? std::nullopt : std::optional(remainder_of(a, b));
    case Op::power: return if_finite(std::pow(a, b));
    case Op::function: return if_finite(step.function(a));
    case Op::call: return called(step.callable.get(), a, b, step.binary);
    case Op::least: return b < a ? b : a;
    case Op::greatest: return b > a ? b : a;
  }
  return std::nullopt;
}

std::optional<FloatTape::Position> FloatTape::add(Step step, std::span<const std::int64_t> symbols, double read) {
  const auto known = std::ranges::find_if(steps_, [&](const Step& other) { return same(other, step); });
  if (known != steps_.end()) return static_cast<Position>(known - steps_.begin());
  const std::optional<double> value = step.op == Op::read ? read : compute(step, symbols);
  if (!value) return std::nullopt;
  steps_.push_back(std::move(step));
  values_.push_back(*value);
  return static_cast<Position>(steps_.size() - 1);
}

bool FloatTape::holds(const Outcome& outcome) const {
  const double a = values_[outcome.left], b = values_[outcome.right];
  switch (outcome.comparison) {
    case Comparison::less: return a < b;
    case Comparison::less_equal: return a <= b;
    case Comparison::equal: return a == b;
    case Comparison::not_equal: return a != b;
    case Comparison::greater: return a > b;
    case Comparison::greater_equal: return a >= b;
  }
  return false;
}

bool FloatTape::compare(Comparison comparison, Position left, Position right) {
  Outcome outcome{comparison, left, right, false};
  outcome.holds = holds(outcome);
  if (std::ranges::find(outcomes_, outcome) == outcomes_.end()) outcomes_.push_back(outcome);
  return outcome.holds;
}

bool FloatTape::advance(Position end, PyObject* const* registers, std::span<const std::int64_t> symbols) noexcept {
  try {
    for (; computed_ < end; ++computed_) {
      const Step& step = steps_[computed_];
      const std::optional<double> value = step.op == Op::read ? PyFloat_AS_DOUBLE(registers[step.source.value]) : compute(step, symbols);
      if (!value) return false;
      values_[computed_] = *value;
    }
  } catch (const std::exception&) {
    return false;  // an int of more than 64 bits
  }
  return true;
}

bool FloatTape::evaluate(PyObject* const* registers, std::span<const std::int64_t> symbols) noexcept {
  return advance(static_cast<Position>(steps_.size()), registers, symbols) &&
         std::ranges::all_of(outcomes_, [&](const Outcome& outcome) { return holds(outcome) == outcome.holds; });
}

SourceId FloatTape::some_source() const {
  for (const Step& step : steps_)
    if (step.source) return step.source;
  return {};
}

std::string FloatTape::text(const Outcome& outcome) const {
  return fmt::format("{}{} {} {}", outcome.holds ? "" : "not ", words(outcome.left), kSigns[static_cast<std::size_t>(outcome.comparison)], words(outcome.right));
}

std::vector<std::string> FloatTape::describe() const {
  std::vector<std::string> lines;
  for (const Outcome& outcome : outcomes_) lines.push_back(text(outcome));
  return lines;
}

std::string FloatTape::changed() const {
  for (const Outcome& outcome : outcomes_)
    if (holds(outcome) != outcome.holds) return text(outcome);
  return {};
}

}  // namespace tenon::python
