#include "graph/levels.h"

#include <algorithm>

namespace tenon::codegen {

using ir::SymbolId;
using ir::ValueId;

Levels::Levels(const ir::Graph& graph) : graph_(graph), level_(graph.value_capacity(), 0), barrier_(graph.value_capacity(), false) {
  for (ValueId input : graph.inputs())
    for (const ir::Dim& d : graph.type(input).shape) d.for_each_symbol([&](SymbolId s) { symbol_level_[s] = 0; });
}

bool Levels::defines_sizes(const ir::Node& node) const {
  bool defines = false;
  for (ValueId v : node.results)
    for (const ir::Dim& d : graph_.type(v).shape) d.for_each_symbol([&](SymbolId s) { defines = defines || !symbol_level_.contains(s); });
  return defines;
}

int Levels::place(const ir::Node& node, bool claimed) {
  const bool is_barrier = defines_sizes(node) || !claimed;
  int level = 0;
  for (ValueId v : node.operands) level = std::max(level, level_[v.value] + (barrier_[v.value] ? 1 : 0));
  for (ValueId v : node.results)
    for (const ir::Dim& d : graph_.type(v).shape)
      d.for_each_symbol([&](SymbolId s) {
        if (const auto known = symbol_level_.find(s); known != symbol_level_.end()) level = std::max(level, known->second);
      });
  for (ValueId v : node.results) {
    level_[v.value] = level;
    barrier_[v.value] = is_barrier;
    for (const ir::Dim& d : graph_.type(v).shape) d.for_each_symbol([&](SymbolId s) { symbol_level_.emplace(s, level + 1); });
  }
  return level;
}

}  // namespace tenon::codegen
