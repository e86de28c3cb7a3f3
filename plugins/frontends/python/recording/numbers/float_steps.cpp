#include "python/recording/numbers/float_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "python/foreign/math_functions.h"
#include "python/stand_ins/symbolic_scalar.h"
#include "python/symbols/symbolic_int.h"

namespace tenon::python {
namespace {

constexpr std::string_view kSigns[] = {"+", "-", "*", "/", "//", "%", "**"};

}  // namespace

std::string words_of_step(std::string_view before, const std::string& left, std::string_view between, const std::string& right) {
  constexpr std::size_t kMostLetters = 80;
  if (left.size() + right.size() > kMostLetters) return "a float";
  return std::string(before) + "(" + left + std::string(between) + right + ")";
}

Ref FloatSteps::input(PyObject* object, SourceId source, GuardSet& guards) {
  if (core_.alone) return {};
  const std::string name = inputs_.words_of(source, guards);
  const double value = PyFloat_AS_DOUBLE(object);
  std::int64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  if (guards.sources()[source].kind == SourceKind::chosen_item) core_.symbols.vary(name, bits);
  if (!core_.symbols.varies(name, bits, guards.sources()[source].kind == SourceKind::argument)) return {};
  if (const auto known = read_.find(source.value); known != read_.end()) return known->second;
  guards.add(GuardKind::type_is, source, reinterpret_cast<PyObject*>(&PyFloat_Type));
  const auto step = core_.symbols.float_step({.op = FloatTape::Op::read, .source = source, .words = name}, value);
  return read_.emplace(source.value, make_symbolic_scalar({.roots = {name}, .step = step})).first->second;
}

SourceId FloatSteps::source_of(PyObject* stand_in) const {
  for (const auto& [source, scalar] : read_)
    if (scalar.is(stand_in)) return SourceId{source};
  return {};
}

std::optional<FloatTape::Position> FloatSteps::step_of(PyObject* number, std::vector<std::string>& roots) {
  if (is_symbolic_scalar(number)) {
    for (const std::string& root : scalar_of(number).roots)
      if (std::ranges::find(roots, root) == roots.end()) roots.push_back(root);
    return scalar_of(number).step;
  }
  if (PyFloat_CheckExact(number)) return core_.symbols.float_step({.number = PyFloat_AS_DOUBLE(number), .words = fmt::format("{}", PyFloat_AS_DOUBLE(number))});
  const std::optional<ir::Dim> integer = integer_of(number);
  if (!integer) return std::nullopt;
  for (std::string& name : core_.symbols.names_of(*integer)) roots.push_back(std::move(name));
  return core_.symbols.as_float(*integer);
}

Ref FloatSteps::add(FloatTape::Step step, std::vector<std::string> roots) {
  const auto position = core_.symbols.float_step(std::move(step));
  return position ? make_symbolic_scalar({.roots = std::move(roots), .step = position}) : Ref();
}

Ref FloatSteps::arithmetic(FloatTape::Op op, PyObject* a, PyObject* b) {
  if (core_.alone) return {};
  std::vector<std::string> roots;
  const auto left = step_of(a, roots), right = step_of(b, roots);
  if (!left || !right) return {};
  const FloatTape& floats = core_.symbols.floats();
  const std::string_view sign = kSigns[static_cast<std::size_t>(op) - static_cast<std::size_t>(FloatTape::Op::add)];
  std::string words = words_of_step("", floats.words(*left), sign, floats.words(*right));
  return add({.op = op, .left = *left, .right = *right, .words = std::move(words)}, std::move(roots));
}

ir::ValueId FloatSteps::value_of(FloatTape::Position step) {
  if (const auto known = values_.find(step); known != values_.end()) return known->second;
  return values_[step] = inputs_.add_float(step);
}

Ref FloatSteps::of_call(PyObject* callable, std::string_view name, std::span<const Ref> numbers) {
  if (core_.alone || numbers.empty() || numbers.size() > 2) return {};
  const bool binary = numbers.size() == 2;
  std::vector<std::string> roots;
  std::optional<FloatTape::Position> steps[2] = {0, 0};
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (!(steps[i] = step_of(numbers[i].get(), roots))) return {};
  const FloatTape& floats = core_.symbols.floats();
  std::string words = words_of_step(name, floats.words(*steps[0]), binary ? ", " : "", binary ? floats.words(*steps[1]) : "");
  return add({.op = FloatTape::Op::call, .left = *steps[0], .right = *steps[1], .callable = Ref::borrow(callable), .binary = binary, .words = std::move(words)}, std::move(roots));
}

Ref FloatSteps::call(PyObject* callable, std::string_view name, PyObject* args) {
  if (!computes_before_the_graph(name)) return {};
  std::vector<Ref> numbers;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) numbers.push_back(Ref::borrow(PyTuple_GET_ITEM(args, i)));
  Ref made = of_call(callable, name, numbers);
  if (!made || !name.starts_with("is")) return made;
  const auto zero = core_.symbols.float_step({.words = "0.0"});
  return Ref::borrow(core_.symbols.floats().compare(FloatTape::Comparison::not_equal, *scalar_of(made.get()).step, *zero) ? Py_True : Py_False);
}

}  // namespace tenon::python
