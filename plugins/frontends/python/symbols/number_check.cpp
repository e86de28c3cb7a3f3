#include "python/symbols/number_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "python/guards/object_checks.h"
#include "python/metadata/tensor_spec.h"

namespace tenon::python {
namespace {

bool read_number(const NumberSource& number, PyObject* object, std::int64_t& value) noexcept {
  if (number.kind == NumberSource::Kind::extent) return read_extent(object, number.dimension, value);
  if (number.kind == NumberSource::Kind::stride) return read_stride(object, number.dimension, value);
  if (number.kind == NumberSource::Kind::length) return (value = checks::length_of(object)) >= 0;
  int overflow = 0;
  value = PyLong_AsLongLongAndOverflow(object, &overflow);
  return overflow == 0;
}

bool evaluate(const ir::Dim& dim, std::span<const std::int64_t> symbols, std::int64_t& value) noexcept {
  try {
    value = dim.evaluate(symbols);
    return true;
  } catch (const std::exception&) {
    return false;  // more than 64 bits
  }
}

bool read_whole_float(double number, std::int64_t& value) noexcept {
  if (!(std::abs(number) <= kMostExactInFloats)) return false;
  value = static_cast<std::int64_t>(number);
  return true;
}

const char* sign(ir::Relation::Operator op) {
  switch (op) {
    case ir::Relation::Operator::equal: return "==";
    case ir::Relation::Operator::not_equal: return "!=";
    case ir::Relation::Operator::less: return "<";
    case ir::Relation::Operator::less_equal: return "<=";
    case ir::Relation::Operator::multiple_of: return "is a multiple of";
  }
  return "?";
}

}  // namespace

SourceId NumberCheck::some_source() const {
  for (const NumberSource& number : sources_)
    if (number.source) return number.source;
  return floats_.some_source();
}

bool NumberCheck::read(PyObject* const* registers) noexcept {
  floats_.rewind();
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const NumberSource& number = sources_[i];
    if (number.kind == NumberSource::Kind::data) continue;
    // The steps before it, or what it is made of, are over symbols that were read.
    const bool is_read = number.kind == NumberSource::Kind::expression ? evaluate(number.value, values_, values_[i])
                         : number.kind == NumberSource::Kind::whole_float
                             ? floats_.advance(number.step + 1, registers, values_) && read_whole_float(floats_.value(number.step), values_[i])
                             : read_number(number, registers[number.source.value], values_[i]);
    if (!is_read) return false;
  }
  return true;
}

bool NumberCheck::relation_holds(const ir::Relation& relation) const noexcept {
  // The commonest forms, `2 <= s` and `s == 3`, cost no walk over an expression.
  const SymbolId left = relation.left.as_symbol(), right = relation.right.as_symbol();
  if ((left || relation.left.is_constant()) && (right || relation.right.is_constant()) && relation.op != ir::Relation::Operator::multiple_of) {
    const std::int64_t a = left ? values_[left.value] : relation.left.constant(), b = right ? values_[right.value] : relation.right.constant();
    switch (relation.op) {
      case ir::Relation::Operator::equal: return a == b;
      case ir::Relation::Operator::not_equal: return a != b;
      case ir::Relation::Operator::less: return a < b;
      default: return a <= b;
    }
  }
  return relation.holds(values_);
}

bool NumberCheck::holds(PyObject* const* registers) noexcept {
  if (!read(registers)) return false;
  for (const ir::Relation& relation : relations_)
    if (!relation_holds(relation)) return false;
  try {
    for (const ir::Dim& dim : computed_) dim.evaluate(values_);
  } catch (const std::exception&) {
    return false;  // more than 64 bits
  }
  if (!floats_.empty() && !floats_.evaluate(registers, values_)) return false;
  if (first_.empty()) first_ = values_;  // the capture checks itself first
  return true;
}

namespace {

/// The symbols of a relation, each once.
std::vector<std::size_t> symbols_in(const ir::Relation& relation) {
  std::vector<std::size_t> symbols;
  for (const ir::Dim* side : {&relation.left, &relation.right})
    side->for_each_symbol([&](SymbolId s) {
      if (std::ranges::find(symbols, s.value) == symbols.end()) symbols.push_back(s.value);
    });
  return symbols;
}

template <class Text>
std::string listed(const std::vector<std::size_t>& symbols, Text text) {
  std::string all;
  for (std::size_t s : symbols) all += (all.empty() ? "" : ", ") + text(s);
  return all;
}

}  // namespace

std::optional<GuardFailure> NumberCheck::failure(PyObject* const* registers) {
  if (!read(registers)) return GuardFailure{"the integers", "have at most 64 bits", "64 bits", "more"};
  for (const ir::Relation& relation : relations_)
    if (!relation_holds(relation)) {
      const std::vector<std::size_t> in = symbols_in(relation);
      return GuardFailure{listed(in, [&](std::size_t s) { return sources_[s].name; }), text(relation),
                          listed(in, [&](std::size_t s) { return first_.empty() ? "?" : std::to_string(first_[s]); }),
                          listed(in, [&](std::size_t s) { return std::to_string(values_[s]); })};
    }
  for (const ir::Dim& dim : computed_) {
    try {
      dim.evaluate(values_);
    } catch (const std::exception& overflow) {
      return GuardFailure{text(dim), text(dim) + " has at most 64 bits", "64 bits", overflow.what()};
    }
  }
  if (!floats_.evaluate(registers, values_)) {
    const std::string changed = floats_.changed();
    if (changed.empty()) return GuardFailure{"arithmetic of floats", "it gives floats", "a float", "none"};
    return GuardFailure{changed, changed, "true", "false"};
  }
  return std::nullopt;
}

std::string NumberCheck::text(const ir::Dim& dim) const {
  return dim.to_string([&](SymbolId s) { return sources_[s.value].name; });
}

std::string NumberCheck::text(const ir::Relation& relation) const {
  return fmt::format("{} {} {}", text(relation.left), sign(relation.op), text(relation.right));
}

std::vector<std::string> NumberCheck::describe() const {
  std::vector<std::string> lines;
  for (const ir::Relation& relation : relations_) lines.push_back(text(relation));
  for (std::string& line : floats_.describe()) lines.push_back(std::move(line));
  return lines;
}

}  // namespace tenon::python
