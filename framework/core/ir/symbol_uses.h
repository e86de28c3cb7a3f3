// Where a graph mentions its symbols.
#pragma once

#include <functional>
#include <vector>

#include "core/ir/graph.h"

namespace tenon::ir {

using SymbolVisitor = std::function<void(SymbolId)>;

/// By SymbolId: the node whose result defines the symbol when it has run (its size depends on data), or none for one that comes
/// from outside: that an input, or an attribute or literal of a node before, mentions.
std::vector<NodeId> defining_nodes(const Graph& graph);

/// Calls `visit` for every symbol that the type mentions.
void visit_symbols(const Type& type, const SymbolVisitor& visit);
/// Calls `visit` for every symbol that the node's results, attributes or literal operands mention.
void visit_symbols(const Graph& graph, const Node& node, const SymbolVisitor& visit);

}  // namespace tenon::ir
