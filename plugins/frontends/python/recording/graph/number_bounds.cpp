#include "python/recording/graph/number_bounds.h"

#include <Python.h>

#include <algorithm>
#include <string_view>
#include <variant>

#include "core/ops/infer.h"

namespace tenon::python {
namespace {

/// Whether a node gives elements of its first operand, and none of another.
bool only_moves(std::string_view op) {
  static constexpr std::string_view kMoves[] = {"reshape", "select", "slice", "permute", "expand", "flip", "full"};
  return std::ranges::find(kMoves, op) != std::end(kMoves);
}

}  // namespace

std::optional<NumberBounds::Bounds> NumberBounds::of(ir::ValueId value, int links) const {
  if (const auto noted = noted_.find(value); noted != noted_.end()) return noted->second;
  const ir::Value& known = graph_.value(value);
  if (known.kind == ir::ValueKind::literal) {
    const auto* number = std::get_if<ir::Dim>(&known.literal);
    return number ? std::optional(Bounds{*number, *number}) : std::nullopt;
  }
  if (known.kind != ir::ValueKind::result || links == 0) return std::nullopt;
  const ir::Node& node = graph_.node(known.node);
  const bool widens = node.op == "_to_copy" && graph_.type(value).dtype == DType::i64 && is_int(graph_.type(node.operands.front()).dtype);
  return widens || only_moves(node.op) ? of(node.operands.front(), links - 1) : std::nullopt;
}

std::optional<NumberBounds::Bounds> NumberBounds::of_arithmetic(std::string_view op, const Bounds& a, const Bounds& b) {
  try {
    if (op == "add") return Bounds{a.least + b.least, a.most + b.most};
    if (op == "sub") return Bounds{a.least - b.most, a.most - b.least};
  } catch (const Exception&) {  // larger than expressions may be
  }
  return std::nullopt;
}

bool NumberBounds::are_within(const Bounds& bounds, std::int64_t most) const {
  return ops::infer::range(graph_, bounds.least).least >= -most && ops::infer::range(graph_, bounds.most).most <= most;
}

std::optional<bool> NumberBounds::less(const Bounds& a, const Bounds& b) const {
  if (ops::infer::range(graph_, a.most - b.least).most < 0) return true;
  if (ops::infer::range(graph_, a.least - b.most).least >= 0) return false;
  return std::nullopt;
}

std::optional<bool> NumberBounds::compare(int operation, const Bounds& a, const Bounds& b) const {
  const auto not_ = [](std::optional<bool> outcome) { return outcome ? std::optional(!*outcome) : std::nullopt; };
  switch (operation) {
    case Py_LT: return less(a, b);
    case Py_GT: return less(b, a);
    case Py_GE: return not_(less(a, b));
    case Py_LE: return not_(less(b, a));
    default: break;
  }
  const bool differ = less(a, b) == true || less(b, a) == true;
  return differ ? std::optional(operation == Py_NE) : std::nullopt;
}

}  // namespace tenon::python
