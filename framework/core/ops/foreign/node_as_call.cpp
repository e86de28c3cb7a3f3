#include "core/ops/foreign/node_as_call.h"

#include <algorithm>
#include <map>
#include <vector>

#include "core/ops/catalog.h"
#include "core/ops/foreign/foreign_signature.h"

namespace tenon::ops {
namespace {

ForeignArgument argument_of(const ir::Attribute& attribute) {
  return std::visit(
      [](const auto& value) -> ForeignArgument {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::vector<ir::Dim>> || std::is_same_v<T, std::vector<double>>) {
          ForeignList list;
          for (const auto& each : value) list.push_back({each});
          return {std::move(list)};
        } else {
          return {value};
        }
      },
      attribute);
}

/// What a node says of each parameter of its op's schema.
class Said {
 public:
  Said(const ir::Graph& graph, const ir::Node& node, std::span<const SchemaParameter> schema) : graph_(graph) {
    std::size_t next = 0, single = 0;
    for (const SchemaParameter& p : schema) single += p.type == "Tensor";
    for (const SchemaParameter& p : schema) {
      if (p.type == "Tensor[]") {
        ForeignList list;
        for (const std::size_t end = node.operands.size() - std::min(single, node.operands.size()) + next; next < end;) list.push_back(operand(node.operands[next++]));
        arguments_[p.name] = {std::move(list)};
      } else if (p.is_operand() && next < node.operands.size()) {
        arguments_[p.name] = operand(node.operands[next++]);
      }
    }
    for (const ir::NamedAttribute& a : node.attributes) arguments_[std::string(std::string_view(a.name))] = argument_of(a.value);
    for (const SchemaParameter& p : schema)
      if (!arguments_.contains(p.name) && (p.optional || p.otherwise)) defaults_[p.name] = p.otherwise.value_or(ForeignArgument{});
  }

  /// Null where the node does not say.
  const ForeignArgument* find(const std::string& parameter) const {
    const auto found = arguments_.find(parameter);
    return found == arguments_.end() || found->second.is_none() ? nullptr : &found->second;
  }
  /// What it means by saying nothing; null for a parameter that is none of the op's, or has no default.
  const ForeignArgument* find_default(const std::string& parameter) const {
    const auto found = defaults_.find(parameter);
    return found == defaults_.end() ? nullptr : &found->second;
  }

 private:
  ForeignArgument operand(ir::ValueId v) const {
    const ir::Value& value = graph_.value(v);
    if (value.kind != ir::ValueKind::literal) return {v};
    return std::visit([](const auto& number) { return ForeignArgument{number}; }, value.literal);
  }

  const ir::Graph& graph_;
  std::map<std::string, ForeignArgument> arguments_, defaults_;
};

/// The arguments of an alias by what the node says; nothing where one is missing.
std::optional<ForeignCall> guess(const Alias& alias, const Op& op, const Said& said) {
  ForeignCall call;
  call.name = alias.name;
  call.any_device = true;
  bool by_name = false;
  for (const ForeignParameter& p : parse_signature(alias.signature, op.schema)) {
    const ForeignArgument* given = said.find(p.target);
    if (!given && !p.otherwise) given = said.find_default(p.target);
    if (!given) {
      if (!p.otherwise && !p.variadic) return std::nullopt;
      by_name = true;
    } else if (p.keyword_only || by_name) {
      if (p.variadic) return std::nullopt;
      call.keyword.emplace_back(p.name, *given);
    } else {
      call.positional.push_back(*given);
    }
  }
  return call;
}

/// The attributes with the defaults of the schema where the node says nothing; a dtype is by default that of the result.
std::map<std::string, ForeignArgument> whole_attributes(const ir::Graph& graph, const ir::Node& node, std::span<const SchemaParameter> schema) {
  std::map<std::string, ForeignArgument> whole;
  for (const SchemaParameter& p : schema) {
    if (p.type == "ScalarType") whole[p.name] = {graph.type(node.results.front()).dtype};
    else if (!p.is_operand() && p.otherwise && !p.otherwise->is_none()) whole[p.name] = *p.otherwise;
  }
  for (const ir::NamedAttribute& a : node.attributes) {
    const std::string name(std::string_view(a.name));
    if (std::holds_alternative<std::monostate>(a.value)) whole.erase(name);
    else whole[name] = argument_of(a.value);
  }
  return whole;
}

/// One integer for a list of them stands for as many as are needed.
bool same(const ForeignArgument& a, const ForeignArgument& b) {
  if (const auto* list = a.as<ForeignList>(); list && b.as<ir::Dim>()) return std::ranges::all_of(*list, [&](const ForeignArgument& each) { return same(each, b); });
  if (a.as<ir::Dim>() && b.as<ForeignList>()) return same(b, a);
  if (a.value.index() != b.value.index()) return false;
  if (const auto* list = a.as<ForeignList>()) return std::ranges::equal(*list, *b.as<ForeignList>(), same);
  if (const auto* flag = a.as<bool>()) return *flag == *b.as<bool>();
  if (const auto* dim = a.as<ir::Dim>()) return *dim == *b.as<ir::Dim>();
  if (const auto* number = a.as<double>()) return *number == *b.as<double>();
  if (const auto* text = a.as<std::string>()) return *text == *b.as<std::string>();
  if (const auto* dtype = a.as<DType>()) return *dtype == *b.as<DType>();
  return a.is_none();
}

/// A graph with the operands of a node as inputs, in which a call is tried.
class Trial {
 public:
  Trial(const ir::Graph& graph, const ir::Node& node) : from_(graph), node_(node) {
    for (const ir::SymbolInfo& symbol : graph.symbols()) scratch_.add_symbol(symbol);
    for (const ir::ValueId v : node.operands) {
      if (graph.value(v).kind == ir::ValueKind::literal || inputs_.contains(v)) continue;
      ir::Type type = graph.type(v);
      type.strides.reset();
      inputs_[v] = scratch_.add_input(std::move(type));
    }
  }

  /// Whether the call makes the node and nothing else.
  bool gives_the_node(ForeignCall call, std::span<const SchemaParameter> schema) {
    for (ForeignArgument& a : call.positional) translate(a);
    for (auto& [name, a] : call.keyword) translate(a);
    const std::vector<ir::ValueId> made = results_of(call);
    if (made.empty() || scratch_.nodes().size() != 1) return false;
    const ir::Node& node = scratch_.node(scratch_.nodes().front());
    if (node.op != node_.op || node.operands.size() != node_.operands.size() || !std::ranges::equal(made, node.results)) return false;
    for (std::size_t i = 0; i < node.operands.size(); ++i)
      if (!is_operand(node.operands[i], node_.operands[i])) return false;
    const auto mine = whole_attributes(scratch_, node, schema), wanted = whole_attributes(from_, node_, schema);
    if (!std::ranges::equal(mine, wanted, [](const auto& a, const auto& b) { return a.first == b.first && same(a.second, b.second); })) return false;
    return std::ranges::equal(node.results, node_.results, [&](ir::ValueId a, ir::ValueId b) {
      const ir::Type &x = scratch_.type(a), &y = from_.type(b);
      return x.dtype == y.dtype && x.shape.size() == y.shape.size() && x.device == y.device;
    });
  }

 private:
  /// None where the guess makes no sense to the entry.
  std::vector<ir::ValueId> results_of(const ForeignCall& call) {
    try {
      NodeBuilder builder(scratch_);
      const auto made = call_foreign(builder, call);
      return made ? *made : std::vector<ir::ValueId>();
    } catch (const std::exception&) {
      return {};
    }
  }

  void translate(ForeignArgument& argument) const {
    if (const auto* v = argument.as<ir::ValueId>()) argument = {inputs_.at(*v)};
    if (auto* list = std::get_if<ForeignList>(&argument.value))
      for (ForeignArgument& each : *list) translate(each);
  }

  bool is_operand(ir::ValueId here, ir::ValueId there) const {
    const ir::Value &x = scratch_.value(here), &y = from_.value(there);
    if (y.kind == ir::ValueKind::literal) return x.kind == ir::ValueKind::literal && x.literal == y.literal;
    return inputs_.at(there) == here;
  }

  const ir::Graph& from_;
  const ir::Node& node_;
  ir::Graph scratch_;
  std::map<ir::ValueId, ir::ValueId> inputs_;
};

}  // namespace

std::optional<ForeignCall> node_as_call(const ir::Graph& graph, ir::NodeId id, std::string_view library) {
  const ir::Node& node = graph.node(id);
  const Op* op = find_op(node.op);
  if (!op || !node.regions.empty()) return std::nullopt;
  const std::vector<SchemaParameter> schema = parse_schema(op->schema);
  const Said said(graph, node, schema);
  const std::string method = std::string(library) + "Tensor.";
  for (const bool methods : {false, true})
    for (const Alias& alias : op->aliases) {
      if (!alias.name.starts_with(library) || alias.name.starts_with(method) != methods) continue;
      std::optional<ForeignCall> call = guess(alias, *op, said);
      if (call && Trial(graph, node).gives_the_node(*call, schema)) return call;
    }
  return std::nullopt;
}

}  // namespace tenon::ops
