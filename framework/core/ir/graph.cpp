#include "core/ir/graph.h"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <utility>

#include "core/base/error.h"
#include "core/ir/names.h"

namespace tenon::ir {
namespace {

/// Where a node stands. Numbers grow along an order but where nodes were put in or taken out later: looked for from where its number would be.
std::vector<NodeId>::iterator place_in(std::vector<NodeId>& order, NodeId node) {
  const auto guess = order.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(node.value, order.size()));
  auto before = guess, after = guess;
  while (before != order.begin() || after != order.end()) {
    if (after != order.end() && *after++ == node) return after - 1;
    if (before != order.begin() && *--before == node) return before;
  }
  return order.end();
}

Type literal_type(const Literal& literal) {
  switch (literal.index()) {
    case 0: return Type::tensor(DType::b8, {});
    case 1: return Type::tensor(DType::i64, {});
    default: return Type::tensor(DType::f64, {});
  }
}

}  // namespace

/// Names in use, and the next number to try for each stem; of values, symbols and constants apart. Names are known by their hashes: of two with one hash,
/// the later counts as taken and gets a number.
struct Graph::Names {
  class Space {
   public:
    void reserve(std::size_t names) { known_.reserve(names); }

    std::string unique(std::string wish) {
      Known& stem = known_[std::hash<std::string>()(wish)];
      if (!std::exchange(stem.taken, true)) return wish;
      wish += '_';
      for (;;) {
        std::string name = wish + std::to_string(++stem.number);
        if (!std::exchange(known_[std::hash<std::string>()(name)].taken, true)) return name;
      }
    }

    void erase(const std::string& name) { known_[std::hash<std::string>()(name)].taken = false; }

   private:
    struct Known {
      bool taken = false;
      int number = 0;  // the last that was tried behind it
    };
    std::unordered_map<std::size_t, Known> known_;
  };
  Space values, symbols, constants;
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
  g.types_ = types_;
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

void Graph::reserve(std::size_t nodes, std::size_t values) {
  order_.reserve(nodes);
  nodes_.reserve(nodes);
  values_.reserve(values);
  names_->values.reserve(values);
}

SymbolId Graph::add_symbol(SymbolInfo info) {
  const SymbolId id(symbols_.size());
  std::string wish = info.name.empty() ? fmt::format("s{}", id.value) : as_name(info.name);
  if (is_reserved(wish)) wish += "_";
  info.name = names_->symbols.unique(std::move(wish));
  symbols_.push_back(std::move(info));
  return id;
}

ConstantId Graph::add_constant(Constant constant) {
  const ConstantId id(constants_.size());
  constant.name = names_->constants.unique(constant.name.empty() ? fmt::format("c{}", id.value) : std::move(constant.name));
  constants_.push_back(std::move(constant));
  return id;
}

ValueId Graph::add_input(Type type, std::string wish) {
  const ValueId id(values_.size());
  values_.push_back({ValueKind::input, types_.intern(std::move(type)), {}, static_cast<std::uint32_t>(inputs_.size()), false,
                     unique_name(wish.empty() ? "arg" : wish)});
  inputs_.push_back(id);
  return id;
}

ValueId Graph::add_literal(Literal literal) {
  const ValueId id(values_.size());
  const TypeId type = types_.intern(literal_type(literal));
  values_.push_back({ValueKind::literal, type, {}, 0, std::move(literal), {}});
  return id;
}

RegionId Graph::add_region(Graph graph) {
  const RegionId id(regions_.size());
  regions_.push_back(std::make_unique<Graph>(std::move(graph)));
  return id;
}

NodeId Graph::add_node(Name op, std::vector<ValueId> operands, Attributes attributes, std::vector<Type> result_types,
                       SharedLocation location, std::vector<RegionId> regions, std::optional<NodeId> before,
                       std::span<const std::string> names) {
  const NodeId id(nodes_.size());
  std::sort(attributes.begin(), attributes.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  std::vector<ValueId> results;
  for (std::uint32_t i = 0; i < result_types.size(); ++i) {
    results.emplace_back(values_.size());
    const std::string& wish = i < names.size() && !names[i].empty() ? names[i] : op.text();
    values_.push_back({ValueKind::result, types_.intern(std::move(result_types[i])), id, i, false, unique_name(wish)});
  }
  nodes_.push_back({op, std::move(operands), std::move(attributes), std::move(results), std::move(regions), std::move(location)});
  order_.insert(before ? place_in(order_, *before) : order_.end(), id);
  return id;
}

void Graph::set_name(ValueId value, std::string wish) {
  Value& v = values_[value.value];
  if (v.name == wish) return;
  names_->values.erase(v.name);
  v.name = unique_name(wish);
}

void Graph::set_strides(ValueId value, std::optional<Shape> strides) {
  Type changed = type(value);
  changed.strides = std::move(strides);
  set_type(value, std::move(changed));
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
    for (ValueId r : nodes_[n.value].results) names_->values.erase(values_[r.value].name);
  }
  std::erase_if(order_, [&](NodeId n) { return gone[n.value]; });
}

namespace {

/// Calls `visit` for the attribute `index` of each node `constant`, in regions too.
template <class Visit>
void for_each_constant_index(Graph& graph, Visit&& visit) {
  for (NodeId n : graph.nodes()) {
    Node& node = graph.mutable_node(n);
    for (RegionId r : node.regions) for_each_constant_index(graph.mutable_region(r), visit);
    if (node.op != "constant") continue;
    for (NamedAttribute& a : node.attributes)
      if (Dim* index = std::get_if<Dim>(&a.value); a.name == "index" && index) visit(*index);
  }
}

}  // namespace

std::vector<ConstantId> Graph::drop_unused_constants() {
  std::vector<std::int64_t> numbers(constants_.size(), -1);
  for_each_constant_index(*this, [&](Dim& index) { numbers.at(static_cast<std::size_t>(index.constant())) = 0; });
  std::vector<ConstantId> kept;
  std::vector<Constant> constants;
  for (std::size_t i = 0; i < constants_.size(); ++i) {
    if (numbers[i] < 0) {
      names_->constants.erase(constants_[i].name);
      continue;
    }
    numbers[i] = static_cast<std::int64_t>(kept.size());
    kept.emplace_back(i);
    constants.push_back(std::move(constants_[i]));
  }
  constants_ = std::move(constants);
  for_each_constant_index(*this, [&](Dim& index) { index = numbers[static_cast<std::size_t>(index.constant())]; });
  return kept;
}

std::string Graph::unique_name(std::string_view wish) { return names_->values.unique(as_name(wish)); }

}  // namespace tenon::ir
