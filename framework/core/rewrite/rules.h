// Rules (a pattern, and what stands for it) and the worklist that applies them until none matches.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "core/rewrite/pattern.h"

namespace tenon::rewrite {

/// A place where a rule's pattern matched.
class Match {
 public:
  Match(Rewriter& rewriter, NodeId node, Bindings bindings) : rewriter_(rewriter), node_(node), bindings_(std::move(bindings)) {}

  /// The value bound to a slot.
  ValueId operator[](std::size_t slot) const { return bindings_[slot]; }
  /// The number of a `constant` slot.
  double number(std::size_t slot) const { return *number_of(rewriter_.graph(), bindings_[slot]); }

  NodeId id() const { return node_; }
  const ir::Node& node() const { return rewriter_.graph().node(node_); }
  const ir::Type& type() const { return rewriter_.graph().type(node().results[0]); }
  const ir::Type& type(std::size_t slot) const { return rewriter_.graph().type(bindings_[slot]); }
  Rewriter& rewriter() { return rewriter_; }

  /// Makes a node, with one result, in front of the matched one.
  ValueId make(std::string_view op, std::vector<ValueId> operands, ir::Attributes attributes = {}) {
    return rewriter_.before(node_).one(op, std::move(operands), std::move(attributes));
  }
  ValueId literal(ir::Literal value) { return rewriter_.graph().add_literal(std::move(value)); }

 private:
  Rewriter& rewriter_;
  NodeId node_;
  Bindings bindings_;
};

/// A law: where `pattern` matches, the value that `replace` gives is equal. `replace` may decline by giving nothing. A replacement whose
/// type does not fit (a literal, or another shape) is not used, so a rule need not check for broadcasting. The pattern any(0) is that of a
/// rule for every op with one result: slot 0 is the result itself.
struct Rule {
  std::string_view name;
  Pattern pattern;
  std::function<std::optional<ValueId>(Match&)> replace;
};

/// Applies the rules to a graph (not to its regions) until none matches; rules are tried in order. Gives the number of applications.
/// Ends with an exception (internal) when the rules undo each other.
std::size_t apply_rules(ir::Graph& graph, std::span<const Rule> rules);

}  // namespace tenon::rewrite
