// Patterns of nodes: what a rewriting rule matches, written as the expression that it is about.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/rewrite/rewriter.h"

namespace tenon::rewrite {

/// The values that a pattern bound, by slot.
using Bindings = std::vector<ValueId>;

/// A tree of nodes that a value is the root of, or not: op("sub", {any(0), number(0)}). Made by the functions below.
class Pattern {
 public:
  /// The bindings with which `value` matches, the first of several where operands may be exchanged; nothing when it does not match.
  std::optional<Bindings> match(const Rewriter& rewriter, ValueId value) const;
  /// The op at the root, or "" for a pattern of one value.
  const std::string& root() const { return op_; }

  /// Also matches with its two operands exchanged.
  Pattern commuted() const;
  /// Matches whatever attributes the root has. Without it only nodes without attributes match: an attribute that the rule's author
  /// did not think of may change what the op means.
  Pattern with_attributes() const;

  friend Pattern any(std::size_t slot);
  friend Pattern constant(std::size_t slot);
  friend Pattern number(double value);
  friend Pattern op(std::string name, std::vector<Pattern> operands);

 private:
  enum class Kind { any, constant, number, op };

  std::vector<Bindings> extend(const Rewriter& rewriter, ValueId value, const Bindings& bound) const;
  std::vector<Bindings> extend_leaf(const ir::Graph& graph, ValueId value, Bindings bound) const;

  Kind kind_ = Kind::any;
  std::size_t slot_ = 0;
  double number_ = 0;
  std::string op_;
  std::vector<Pattern> operands_;
  bool commuted_ = false;
  bool with_attributes_ = false;
};

/// Any value. The same slot twice means the same value, or equal literals.
Pattern any(std::size_t slot);
/// A literal that is no symbolic integer.
Pattern constant(std::size_t slot);
/// The literal of exactly this value; 0.0 and -0.0 differ, and the integer 1 counts as 1.0.
Pattern number(double value);
/// A result of a node of that op (with one result) whose operands match.
Pattern op(std::string name, std::vector<Pattern> operands);

/// The value of a literal as a number, bools as 0 and 1; nothing for other values, for symbolic integers, and for integers that a
/// double does not hold.
std::optional<double> number_of(const ir::Graph& graph, ValueId value);
/// True for the same value, and for literals of one kind with the same bits.
bool same_value(const ir::Graph& graph, ValueId a, ValueId b);

}  // namespace tenon::rewrite
