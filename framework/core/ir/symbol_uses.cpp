#include "core/ir/symbol_uses.h"

namespace tenon::ir {
namespace {

void visit_dim(const Dim& dim, const SymbolVisitor& visit) {
  if (!dim.is_constant()) dim.for_each_symbol(visit);
}

/// What a node's attributes, literal operands and regions mention.
void visit_parameters(const Graph& graph, const Node& node, const SymbolVisitor& visit) {
  for (ValueId v : node.operands)
    if (const Value& value = graph.value(v); value.kind == ValueKind::literal)
      if (const auto* dim = std::get_if<Dim>(&value.literal)) visit_dim(*dim, visit);
  for (const NamedAttribute& a : node.attributes) {
    if (const auto* dim = std::get_if<Dim>(&a.value)) visit_dim(*dim, visit);
    if (const auto* dims = std::get_if<std::vector<Dim>>(&a.value))
      for (const Dim& dim : *dims) visit_dim(dim, visit);
  }
  for (RegionId r : node.regions) {
    const Graph& region = graph.region(r);
    for (ValueId v : region.inputs()) visit_symbols(region.type(v), visit);
    for (NodeId n : region.nodes()) visit_symbols(region, region.node(n), visit);
  }
}

}  // namespace

std::vector<NodeId> defining_nodes(const Graph& graph) {
  std::vector<NodeId> definers(graph.symbols().size());
  std::vector<bool> bound(graph.symbols().size(), false);
  const SymbolVisitor bind = [&](SymbolId s) { bound[s.value] = true; };
  for (ValueId v : graph.inputs()) visit_symbols(graph.type(v), bind);
  for (NodeId n : graph.nodes()) {
    visit_parameters(graph, graph.node(n), bind);
    for (ValueId r : graph.node(n).results)
      for (const Dim& dim : graph.type(r).shape) {
        const SymbolId s = dim.as_symbol();
        if (!s || bound[s.value]) continue;
        bound[s.value] = true;
        definers[s.value] = n;
      }
  }
  return definers;
}

void visit_symbols(const Type& type, const SymbolVisitor& visit) {
  for (const Dim& dim : type.shape) visit_dim(dim, visit);
  if (type.strides)
    for (const Dim& dim : *type.strides) visit_dim(dim, visit);
}

void visit_symbols(const Graph& graph, const Node& node, const SymbolVisitor& visit) {
  for (ValueId r : node.results) visit_symbols(graph.type(r), visit);
  visit_parameters(graph, node, visit);
}

}  // namespace tenon::ir
