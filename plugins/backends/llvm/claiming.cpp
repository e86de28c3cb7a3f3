#include "claiming.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/ops/catalog.h"

namespace tenon::llvm_backend {
namespace {

struct Refusal {
  const char* reason;
  std::string text;
};

std::optional<Refusal> refuse_type(const ir::Type& type) {
  if (!type.is_tensor()) return Refusal{"op", "it is ordered by a token"};
  if (is_complex(type.dtype)) return Refusal{"dtype", fmt::format("{} has no generated code", name_of(type.dtype))};
  if (!type.device.is_host()) return Refusal{"device", "it is not on the CPU"};
  return {};
}

std::optional<Refusal> refuse_node(const ir::Graph& graph, const ir::Node& node) {
  if (!node.regions.empty()) return Refusal{"op", "it has regions"};
  for (ValueId v : node.results)
    if (auto r = refuse_type(graph.type(v))) return r;
  for (ValueId v : node.operands)
    if (graph.value(v).kind != ir::ValueKind::literal)
      if (auto r = refuse_type(graph.type(v))) return r;
  if (node.op == "constant") return {};
  const ops::Op* op = ops::find_op(node.op);
  if (!op) return Refusal{"op", fmt::format("the catalogue has no {}", node.op)};
  if (op->traits.random || op->traits.opaque || op->traits.control) return Refusal{"op", fmt::format("{} is not pure", node.op)};
  if (!op->body && !op->loop && !op->scatter && !op->kernel && !op->decompose) return Refusal{"op", fmt::format("{} has no meaning in the catalogue", node.op)};
  return {};
}

/// Gives each node a level so that nodes of one level form a convex group: a node after an unclaimed one, or after one whose size
/// depends on data, is a level further.
class Levels {
 public:
  explicit Levels(const ir::Graph& graph) : graph_(graph), level_(graph.value_capacity(), 0), barrier_(graph.value_capacity(), false) {
    for (ValueId input : graph.inputs())
      for (const ir::Dim& d : graph.type(input).shape) d.for_each_symbol([&](SymbolId s) { symbol_level_[s] = 0; });
  }

  int place(const ir::Node& node, bool claimed) {
    int level = 0;
    for (ValueId v : node.operands) level = std::max(level, level_[v.value] + (barrier_[v.value] ? 1 : 0));
    bool defines = false;
    for (ValueId v : node.results)
      for (const ir::Dim& d : graph_.type(v).shape)
        d.for_each_symbol([&](SymbolId s) {
          auto known = symbol_level_.find(s);
          if (known == symbol_level_.end()) defines = true;
          else level = std::max(level, known->second);
        });
    for (ValueId v : node.results) {
      level_[v.value] = level;
      barrier_[v.value] = defines || !claimed;
      for (const ir::Dim& d : graph_.type(v).shape) d.for_each_symbol([&](SymbolId s) { symbol_level_.emplace(s, level + 1); });
    }
    alone_ = defines;
    return level;
  }
  /// Whether the node placed last makes sizes that depend on data.
  bool alone() const { return alone_; }

 private:
  const ir::Graph& graph_;
  std::vector<int> level_;
  std::vector<bool> barrier_;
  std::map<SymbolId, int> symbol_level_;
  bool alone_ = false;
};

}  // namespace

void claim_nodes(const ir::Graph& graph, Claims& claims) {
  std::map<int, std::vector<std::uint32_t>> groups;
  Levels levels(graph);
  for (NodeId id : graph.nodes()) {
    const ir::Node& node = graph.node(id);
    const auto refusal = refuse_node(graph, node);
    const int level = levels.place(node, !refusal);
    if (refusal) claims.refuse(id.value, refusal->reason, refusal->text);
    else if (levels.alone()) claims.claim(std::vector<std::uint32_t>{id.value});
    else groups[level].push_back(id.value);
  }
  for (const auto& [level, nodes] : groups) claims.claim(nodes);
}

}  // namespace tenon::llvm_backend
