// Which nodes of a graph ask the same of their op's meaning: layers of a model are alike, and a composite op's meaning is a graph of its own.
#pragma once

#include <algorithm>
#include <array>
#include <unordered_map>

#include "core/base/hash.h"
#include "core/ir/graph.h"

namespace tenon::ops {

/// Nodes of one graph whose meanings are known to be sound. Only the last few of those that look alike are kept, so that a question stays cheap
/// whatever the graph.
class KnownMeanings {
 public:
  explicit KnownMeanings(const ir::Graph& graph) : graph_(graph) {}

  /// Whether a node that was added has the same op, attributes, and types and numbers of operands.
  bool has(const ir::Node& node) const {
    const auto found = alike_.find(look_of(node));
    return found != alike_.end() && std::ranges::any_of(found->second.nodes, [&](const ir::Node* known) { return known && asks_same(*known, node); });
  }

  void add(const ir::Node& node) {
    Alike& alike = alike_[look_of(node)];
    alike.nodes[alike.next++ % alike.nodes.size()] = &node;
  }

 private:
  struct Alike {
    std::array<const ir::Node*, 4> nodes{};
    std::size_t next = 0;
  };

  bool asks_same(const ir::Node& a, const ir::Node& b) const {
    return a.op == b.op && a.attributes == b.attributes && std::ranges::equal(a.operands, b.operands, [&](ValueId x, ValueId y) {
      return graph_.value(x).kind == ir::ValueKind::literal ? graph_.value(y).kind == ir::ValueKind::literal && graph_.value(x).literal == graph_.value(y).literal
                                                            : graph_.value(y).kind != ir::ValueKind::literal && graph_.value(x).type == graph_.value(y).type;
    });
  }

  /// Of the op, the operands' types, and the integers among the attributes.
  std::uint64_t look_of(const ir::Node& node) const {
    std::uint64_t look = node.op.number();
    for (ValueId v : node.operands) look = mix(look, graph_.value(v).kind == ir::ValueKind::literal ? UINT64_MAX : graph_.value(v).type.value);
    for (const ir::NamedAttribute& a : node.attributes) {
      if (const auto* dim = std::get_if<ir::Dim>(&a.value)) look = mix(look, dim->hash());
      if (const auto* dims = std::get_if<std::vector<ir::Dim>>(&a.value))
        for (const ir::Dim& d : *dims) look = mix(look, d.hash());
    }
    return look;
  }

  const ir::Graph& graph_;
  std::unordered_map<std::uint64_t, Alike> alike_;
};

}  // namespace tenon::ops
