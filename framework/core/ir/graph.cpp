#include "core/ir/graph.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/base/error.h"

namespace tenon::ir {
namespace {

Type literal_type(const Literal& literal) {
  switch (literal.index()) {
    case 0: return Type::tensor(DType::b8, {});
    case 1: return Type::tensor(DType::i64, {});
    default: return Type::tensor(DType::f64, {});
  }
}

}  // namespace

/// Names in use, and the next number to try for each stem.
struct Graph::Names {
  std::unordered_set<std::string> taken;
  std::unordered_map<std::string, int> next;
};

const Attribute* Node::attribute(std::string_view wanted) const {
  for (const NamedAttribute& a : attributes)
    if (a.name == wanted) return &a.value;
  return nullptr;
}

Graph::Graph() : names_(std::make_unique<Names>()) {}
Graph::Graph(Graph&&) noexcept = default;
Graph& Graph::operator=(Graph&&) noexcept = default;
Graph::~Graph() = default;

Graph Graph::clone() const {
  Graph g;
  g.name = name;
  g.order_ = order_;
  g.inputs_ = inputs_;
  g.outputs_ = outputs_;
  g.symbols_ = symbols_;
  g.constants_ = constants_;
  g.nodes_ = nodes_;
  g.values_ = values_;
  for (const auto& r : regions_) g.regions_.push_back(std::make_unique<Graph>(r->clone()));
  *g.names_ = *names_;
  return g;
}

std::vector<std::vector<NodeId>> Graph::users() const {
  std::vector<std::vector<NodeId>> users(values_.size());
  for (NodeId n : order_)
    for (ValueId v : nodes_[n.value].operands) users[v.value].push_back(n);
  return users;
}

SymbolId Graph::add_symbol(SymbolInfo info) {
  const SymbolId id(symbols_.size());
  if (info.name.empty()) info.name = fmt::format("s{}", id.value);
  symbols_.push_back(std::move(info));
  return id;
}

ConstantId Graph::add_constant(Constant constant) {
  const ConstantId id(constants_.size());
  if (constant.name.empty()) constant.name = fmt::format("c{}", id.value);
  constants_.push_back(std::move(constant));
  return id;
}

ValueId Graph::add_input(Type type, std::string wish) {
  const ValueId id(values_.size());
  values_.push_back({ValueKind::input, std::move(type), {}, static_cast<std::uint32_t>(inputs_.size()), false,
                     unique_name(wish.empty() ? "arg" : wish)});
  inputs_.push_back(id);
  return id;
}

ValueId Graph::add_literal(Literal literal) {
  const ValueId id(values_.size());
  Type type = literal_type(literal);
  values_.push_back({ValueKind::literal, std::move(type), {}, 0, std::move(literal), {}});
  return id;
}

RegionId Graph::add_region(Graph graph) {
  const RegionId id(regions_.size());
  regions_.push_back(std::make_unique<Graph>(std::move(graph)));
  return id;
}

NodeId Graph::add_node(std::string op, std::vector<ValueId> operands, Attributes attributes, std::vector<Type> result_types,
                       Location location, std::vector<RegionId> regions, std::optional<NodeId> before) {
  const NodeId id(nodes_.size());
  std::sort(attributes.begin(), attributes.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  std::vector<ValueId> results;
  for (std::uint32_t i = 0; i < result_types.size(); ++i) {
    results.emplace_back(values_.size());
    values_.push_back({ValueKind::result, std::move(result_types[i]), id, i, false, unique_name(op)});
  }
  nodes_.push_back({std::move(op), std::move(operands), std::move(attributes), std::move(results), std::move(regions), std::move(location)});
  order_.insert(before ? std::find(order_.begin(), order_.end(), *before) : order_.end(), id);
  return id;
}

void Graph::set_name(ValueId value, std::string wish) {
  Value& v = values_[value.value];
  if (v.name == wish) return;
  names_->taken.erase(v.name);
  v.name = unique_name(wish);
}

void Graph::replace_uses(ValueId from, ValueId to) {
  for (NodeId n : order_)
    for (ValueId& operand : nodes_[n.value].operands)
      if (operand == from) operand = to;
  for (Output& o : outputs_)
    if (o.value == from) o.value = to;
}

void Graph::erase_nodes(std::span<const NodeId> ids) {
  std::vector<bool> gone(nodes_.size(), false);
  for (NodeId n : ids) {
    gone[n.value] = true;
    for (ValueId r : nodes_[n.value].results) names_->taken.erase(values_[r.value].name);
  }
  std::erase_if(order_, [&](NodeId n) { return gone[n.value]; });
}

std::string Graph::unique_name(std::string_view wish) {
  std::string stem;
  for (char c : wish) stem += std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' ? c : '_';
  if (stem.empty() || std::isdigit(static_cast<unsigned char>(stem[0])) || stem[0] == '.') stem.insert(0, "v");
  if (names_->taken.insert(stem).second) return stem;
  int& next = names_->next[stem];
  for (;;) {
    std::string name = fmt::format("{}_{}", stem, ++next);
    if (names_->taken.insert(name).second) return name;
  }
}

}  // namespace tenon::ir
