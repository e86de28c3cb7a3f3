#include "host/partition/group_graph.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/base/error.h"
#include "core/ir/outputs.h"
#include "core/ir/symbol_uses.h"

namespace tenon::host {
namespace {

using Replacement = std::function<ir::Dim(SymbolId)>;

ir::Dim replaced(const ir::Dim& dim, const Replacement& by) { return dim.is_constant() ? dim : dim.substitute(by); }

ir::Shape replaced(ir::Shape dims, const Replacement& by) {
  for (ir::Dim& dim : dims) dim = replaced(dim, by);
  return dims;
}

ir::Type replaced(ir::Type type, const Replacement& by) {
  type.shape = replaced(std::move(type.shape), by);
  if (type.strides) type.strides = replaced(std::move(*type.strides), by);
  return type;
}

ir::Attribute replaced(const ir::Attribute& attribute, const Replacement& by) {
  if (const auto* dim = std::get_if<ir::Dim>(&attribute)) return replaced(*dim, by);
  if (const auto* dims = std::get_if<std::vector<ir::Dim>>(&attribute)) return replaced(*dims, by);
  return attribute;
}

ir::Literal replaced(const ir::Literal& literal, const Replacement& by) {
  if (const auto* dim = std::get_if<ir::Dim>(&literal)) return replaced(*dim, by);
  return literal;
}

/// Replaces symbols in place: types, attributes and literals of a graph and its regions.
void replace_symbols(ir::Graph& graph, const Replacement& by) {
  for (std::size_t v = 0; v < graph.value_capacity(); ++v) {
    ir::Value& value = graph.mutable_value(ValueId(v));
    value.literal = replaced(value.literal, by);
    graph.set_type(ValueId(v), replaced(graph.type(ValueId(v)), by));
  }
  for (NodeId n : graph.nodes())
    for (ir::NamedAttribute& a : graph.mutable_node(n).attributes) a.value = replaced(a.value, by);
  for (std::size_t r = 0; r < graph.region_capacity(); ++r) replace_symbols(graph.mutable_region(RegionId(r)), by);
}

/// Builds the graph of one group.
class Cut {
 public:
  using Predicate = std::function<bool(NodeId)>;
  /// `inside`: the nodes of the group; `keeps`: the readers of constants that come with it.
  Cut(const ir::Graph& parent, Predicate inside, Predicate keeps) : parent_(parent), inside_(std::move(inside)), keeps_(std::move(keeps)) {}

  GroupGraph make(std::span<const NodeId> nodes, const std::function<bool(ValueId)>& read_outside) {
    cut_.graph.name = parent_.name;
    for (NodeId n : nodes) add_inputs(n);
    for (NodeId n : nodes) add(n);
    for (NodeId n : nodes) add_outputs(n, read_outside);
    return std::move(cut_);
  }

 private:
  SymbolId symbol(SymbolId outer) {
    const auto [place, fresh] = symbols_.try_emplace(outer, SymbolId(cut_.symbols.size()));
    if (fresh) {
      cut_.graph.add_symbol(parent_.symbols()[outer.value]);
      cut_.symbols.push_back(outer);
    }
    return place->second;
  }

  Replacement to_group() {
    return [this](SymbolId outer) { return ir::Dim::symbol(symbol(outer)); };
  }

  void add_inputs(NodeId n) {
    for (ValueId v : parent_.node(n).operands) {
      const ir::Value& value = parent_.value(v);
      if (values_.contains(v) || value.kind == ir::ValueKind::literal) continue;
      if (value.kind == ir::ValueKind::result && (inside_(value.node) || (reads_constant(parent_.node(value.node)) && keeps_(value.node)))) continue;
      values_[v] = cut_.graph.add_input(replaced(parent_.type(v), to_group()), value.name);
      cut_.inputs.push_back(v);
    }
  }

  ValueId operand(ValueId v) {
    if (const auto known = values_.find(v); known != values_.end()) return known->second;
    const ir::Value& value = parent_.value(v);
    if (value.kind == ir::ValueKind::literal) return values_[v] = cut_.graph.add_literal(replaced(value.literal, to_group()));
    TENON_CHECK(value.kind == ir::ValueKind::result && reads_constant(parent_.node(value.node)), "a group reads value %{} before it is defined", value.name);
    add_constant_reader(value.node);
    return values_.at(v);
  }

  ConstantId constant(ConstantId outer) {
    const auto [place, fresh] = constants_.try_emplace(outer, ConstantId(constants_.size()));
    if (fresh) cut_.graph.add_constant(parent_.constants()[outer.value]);
    return place->second;
  }

  void add_constant_reader(NodeId n) { append(n, {}, index_of(constant(constant_of(parent_.node(n))))); }

  static ir::Attributes index_of(ConstantId id) { return {{"index", ir::Attribute(ir::Dim(static_cast<std::int64_t>(id.value)))}}; }

  /// Regions name the constants of the outermost graph.
  void renumber_constants(ir::Graph& region) {
    for (NodeId n : region.nodes())
      if (reads_constant(region.node(n))) region.mutable_node(n).attributes = index_of(constant(constant_of(region.node(n))));
    for (std::size_t r = 0; r < region.region_capacity(); ++r) renumber_constants(region.mutable_region(RegionId(r)));
  }

  void add(NodeId n) {
    const ir::Node& node = parent_.node(n);
    if (reads_constant(node)) {
      if (!values_.contains(node.results[0])) add_constant_reader(n);
      return;
    }
    std::vector<ValueId> operands;
    for (ValueId v : node.operands) operands.push_back(operand(v));
    ir::Attributes attributes = node.attributes;
    for (ir::NamedAttribute& a : attributes) a.value = replaced(a.value, to_group());
    append(n, std::move(operands), std::move(attributes));
  }

  void append(NodeId n, std::vector<ValueId> operands, ir::Attributes attributes) {
    const ir::Node& node = parent_.node(n);
    std::vector<ir::Type> types;
    for (ValueId r : node.results) types.push_back(replaced(parent_.type(r), to_group()));
    std::vector<RegionId> regions;
    for (RegionId r : node.regions) {
      ir::Graph region = parent_.region(r).clone();
      replace_symbols(region, to_group());
      renumber_constants(region);
      regions.push_back(cut_.graph.add_region(std::move(region)));
    }
    const NodeId copy = cut_.graph.add_node(node.op, std::move(operands), std::move(attributes), std::move(types), node.location, std::move(regions));
    for (std::size_t i = 0; i < node.results.size(); ++i) {
      const ValueId result = cut_.graph.node(copy).results[i];
      values_[node.results[i]] = result;
      cut_.graph.set_name(result, parent_.value(node.results[i]).name);
    }
    cut_.nodes.push_back(n);
  }

  void add_outputs(NodeId n, const std::function<bool(ValueId)>& read_outside) {
    if (reads_constant(parent_.node(n))) return;
    for (ValueId r : parent_.node(n).results) {
      if (!read_outside(r)) continue;
      cut_.graph.add_output({values_.at(r), ir::OutputKind::result, {}});
      cut_.outputs.push_back(r);
    }
  }

  const ir::Graph& parent_;
  Predicate inside_, keeps_;
  GroupGraph cut_;
  std::unordered_map<ValueId, ValueId> values_;
  std::unordered_map<SymbolId, SymbolId> symbols_;
  std::unordered_map<ConstantId, ConstantId> constants_;
};

}  // namespace

bool reads_constant(const ir::Node& node) { return node.op == "constant"; }

ConstantId constant_of(const ir::Node& node) {
  const ir::Attribute* index = node.attribute("index");
  TENON_CHECK(index && std::holds_alternative<ir::Dim>(*index), "a constant node has no index");
  return ConstantId(static_cast<std::size_t>(std::get<ir::Dim>(*index).constant()));
}

GroupCutter::GroupCutter(const ir::Graph& parent)
    : parent_(parent), users_(parent.users()), is_output_(ir::output_values(parent)), symbol_readers_(parent.value_capacity()), stamps_(parent.node_capacity(), 0) {
  if (parent.symbols().empty()) return;
  const std::vector<NodeId> definers = defining_nodes(parent);
  for (NodeId n : parent.nodes())
    visit_symbols(parent, parent.node(n), [&](SymbolId s) {
      if (!definers[s.value] || definers[s.value] == n) return;
      for (ValueId r : parent.node(definers[s.value]).results) symbol_readers_[r.value].push_back(n);
    });
}

GroupGraph GroupCutter::cut(std::span<const NodeId> nodes, const Keeps& keeps) {
  ++stamp_;
  for (NodeId n : nodes) stamps_[n.value] = stamp_;
  return Cut(parent_, [this](NodeId n) { return inside(n); }, keeps).make(nodes, [this](ValueId v) { return read_outside(v); });
}

bool GroupCutter::read_outside(ValueId v) const {
  const auto outside = [this](NodeId n) { return !inside(n); };
  return is_output_[v.value] || std::any_of(users_[v.value].begin(), users_[v.value].end(), outside) ||
         std::any_of(symbol_readers_[v.value].begin(), symbol_readers_[v.value].end(), outside);
}

ir::Graph with_sizes(const ir::Graph& graph, std::span<const std::int64_t> symbols) {
  ir::Graph copy = graph.clone();
  replace_symbols(copy, [&](SymbolId s) { return symbols[s.value] >= 0 ? ir::Dim(symbols[s.value]) : ir::Dim::symbol(s); });
  return copy;
}

}  // namespace tenon::host
