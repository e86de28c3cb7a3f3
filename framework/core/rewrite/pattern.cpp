#include "core/rewrite/pattern.h"

#include <bit>
#include <cmath>

namespace tenon::rewrite {

Pattern any(std::size_t slot) {
  Pattern pattern;
  pattern.slot_ = slot;
  return pattern;
}

Pattern constant(std::size_t slot) {
  Pattern pattern = any(slot);
  pattern.kind_ = Pattern::Kind::constant;
  return pattern;
}

Pattern number(double value) {
  Pattern pattern;
  pattern.kind_ = Pattern::Kind::number;
  pattern.number_ = value;
  return pattern;
}

Pattern op(std::string name, std::vector<Pattern> operands) {
  Pattern pattern;
  pattern.kind_ = Pattern::Kind::op;
  pattern.op_ = std::move(name);
  pattern.operands_ = std::move(operands);
  return pattern;
}

Pattern Pattern::commuted() const {
  Pattern pattern = *this;
  pattern.commuted_ = true;
  return pattern;
}

Pattern Pattern::with_attributes() const {
  Pattern pattern = *this;
  pattern.with_attributes_ = true;
  return pattern;
}

std::optional<Bindings> Pattern::match(const Rewriter& rewriter, ValueId value) const {
  auto all = extend(rewriter, value, {});
  return all.empty() ? std::nullopt : std::optional(std::move(all[0]));
}

/// All ways to go on from what is bound already, so that an exchange below can still fit what comes after it.
std::vector<Bindings> Pattern::extend(const Rewriter& rewriter, ValueId value, const Bindings& bound) const {
  if (kind_ != Kind::op) return extend_leaf(rewriter.graph(), value, bound);
  const ir::Node* node = rewriter.definition(value);
  if (!node || node->op != op_ || node->operands.size() != operands_.size() || node->results.size() != 1) return {};
  if (!with_attributes_ && !node->attributes.empty()) return {};

  std::vector<Bindings> all;
  for (const bool exchanged : {false, true}) {
    if (exchanged && !commuted_) break;
    std::vector<Bindings> ways{bound};
    for (std::size_t i = 0; i < operands_.size(); ++i) {
      const ValueId operand = node->operands[exchanged ? operands_.size() - 1 - i : i];
      std::vector<Bindings> longer;
      for (const Bindings& way : ways)
        for (Bindings& extended : operands_[i].extend(rewriter, operand, way)) longer.push_back(std::move(extended));
      ways = std::move(longer);
    }
    all.insert(all.end(), ways.begin(), ways.end());
  }
  return all;
}

std::vector<Bindings> Pattern::extend_leaf(const ir::Graph& graph, ValueId value, Bindings bound) const {
  if (kind_ == Kind::number) {
    const auto found = number_of(graph, value);
    const bool is_it = found && std::bit_cast<std::uint64_t>(*found) == std::bit_cast<std::uint64_t>(number_);
    if (!is_it) return {};
    return {std::move(bound)};
  }
  if (kind_ == Kind::constant && !number_of(graph, value)) return {};
  if (bound.size() <= slot_) bound.resize(slot_ + 1);
  if (bound[slot_] && !same_value(graph, bound[slot_], value)) return {};
  bound[slot_] = value;
  return {std::move(bound)};
}

std::optional<double> number_of(const ir::Graph& graph, ValueId value) {
  const ir::Value& v = graph.value(value);
  if (v.kind != ir::ValueKind::literal) return {};
  if (const bool* flag = std::get_if<bool>(&v.literal)) return *flag ? 1.0 : 0.0;
  if (const double* real = std::get_if<double>(&v.literal)) return *real;
  const ir::Dim& integer = std::get<ir::Dim>(v.literal);
  constexpr std::int64_t kExact = std::int64_t{1} << 53;
  if (!integer.is_constant() || integer.constant() > kExact || integer.constant() < -kExact) return {};
  return static_cast<double>(integer.constant());
}

bool same_value(const ir::Graph& graph, ValueId a, ValueId b) {
  if (a == b) return true;
  const ir::Value& left = graph.value(a);
  const ir::Value& right = graph.value(b);
  if (left.kind != ir::ValueKind::literal || right.kind != ir::ValueKind::literal) return false;
  if (left.literal.index() != right.literal.index()) return false;
  if (const double* real = std::get_if<double>(&left.literal))
    return std::bit_cast<std::uint64_t>(*real) == std::bit_cast<std::uint64_t>(std::get<double>(right.literal));
  return left.literal == right.literal;
}

}  // namespace tenon::rewrite
