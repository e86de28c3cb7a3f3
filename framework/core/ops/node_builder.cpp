#include "core/ops/node_builder.h"

#include <algorithm>

#include "core/ops/catalog.h"

namespace tenon::ops {
namespace {

/// Inference names sizes that depend on data by symbols that the graph does not have yet.
void add_fresh_symbols(ir::Graph& graph, const std::vector<ir::Type>& types) {
  std::size_t needed = graph.symbols().size();
  for (const ir::Type& type : types)
    for (const ir::Dim& d : type.shape) d.for_each_symbol([&](SymbolId s) { needed = std::max<std::size_t>(needed, s.value + 1); });
  while (graph.symbols().size() < needed) graph.add_symbol({.name = fmt::format("u{}", graph.symbols().size())});
}

bool defines_symbols(const ir::Graph& graph, const std::vector<ir::Type>& types) {
  bool defines = false;
  for (const ir::Type& type : types)
    for (const ir::Dim& d : type.shape) d.for_each_symbol([&](SymbolId s) { defines |= s.value >= graph.symbols().size(); });
  return defines;
}

/// The same places found again have the same size: what is taken and what is put back by one mask fit.
std::optional<ir::NodeId> same_node(const ir::Graph& graph, std::string_view op, const std::vector<ir::ValueId>& operands, const ir::Attributes& attributes) {
  for (ir::NodeId id : graph.nodes())
    if (const ir::Node& node = graph.node(id); node.op == op && node.operands == operands && node.attributes == attributes) return id;
  return std::nullopt;
}

}  // namespace

std::vector<ir::ValueId> NodeBuilder::call(std::string_view name, std::vector<ir::ValueId> operands, ir::Attributes attributes) {
  const Op* op = find_op(name);
  if (!op) throw Exception(error(Code::not_found, "unknown op '{}'", name));
  auto types = op->infer(OpQuery(graph_, operands, attributes));
  if (types && !before_ && defines_symbols(graph_, *types))
    if (const auto known = same_node(graph_, name, operands, attributes)) return graph_.node(*known).results;
  if (!types) throw Exception(error(types.error().code, "{}: {}", name, types.error().message));
  add_fresh_symbols(graph_, *types);
  const ir::NodeId node =
      graph_.add_node(std::string(name), std::move(operands), std::move(attributes), std::move(*types), location_, {}, before_);
  return graph_.node(node).results;
}

ir::ValueId NodeBuilder::one(std::string_view op, std::vector<ir::ValueId> operands, ir::Attributes attributes) {
  const auto results = call(op, std::move(operands), std::move(attributes));
  TENON_CHECK(results.size() == 1, "{} has {} results, not one", op, results.size());
  return results[0];
}

ir::ValueId NodeBuilder::cast(ir::ValueId value, DType dtype) {
  if (graph_.type(value).dtype == dtype || graph_.value(value).kind == ir::ValueKind::literal) return value;
  return one("_to_copy", {value}, {{"dtype", dtype}});
}

}  // namespace tenon::ops
