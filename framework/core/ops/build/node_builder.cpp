#include "core/ops/build/node_builder.h"

#include <algorithm>
#include <span>

#include "core/ops/catalog.h"
#include "core/ops/infer.h"

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

/// Whether two values are computed alike. Gives up, with a no, after so many comparisons.
class SameComputation {
 public:
  explicit SameComputation(const ir::Graph& graph) : graph_(graph) {}

  bool of(const ir::Node& node, std::string_view op, std::span<const ir::ValueId> operands, const ir::Attributes& attributes) {
    return node.op == op && node.regions.empty() && node.attributes == attributes &&
           std::ranges::equal(node.operands, operands, [this](ir::ValueId a, ir::ValueId b) { return of(a, b); });
  }

 private:
  bool of(ir::ValueId a, ir::ValueId b) {
    if (a == b) return true;
    const ir::Value &first = graph_.value(a), &second = graph_.value(b);
    if (first.kind != second.kind || left_-- == 0) return false;
    if (first.kind == ir::ValueKind::literal) return first.literal == second.literal && first.type == second.type;
    if (first.kind != ir::ValueKind::result || first.index != second.index) return false;
    const ir::Node& node = graph_.node(second.node);
    return of(graph_.node(first.node), node.op, node.operands, node.attributes);
  }

  const ir::Graph& graph_;
  std::size_t left_ = 64;
};

/// The same places found again have the same size: what is taken and what is put back by one mask fit.
std::optional<ir::NodeId> same_node(const ir::Graph& graph, std::string_view op, const std::vector<ir::ValueId>& operands, const ir::Attributes& attributes) {
  for (ir::NodeId id : graph.nodes())
    if (graph.node(id).op == op && SameComputation(graph).of(graph.node(id), op, operands, attributes)) return id;
  return std::nullopt;
}

}  // namespace

NodeBuilder::NodeBuilder(ir::Graph& graph, std::optional<ir::NodeId> before) : graph_(graph), before_(before) {
  if (before) device_ = infer::device_of(graph, graph.node(*before));
}

/// The host is what an op creates tensors on where nothing is said.
void NodeBuilder::place(const Op& op, ir::Attributes& attributes) const {
  if (!op.traits.creates) return;
  const auto names_device = [](const ir::NamedAttribute& a) { return a.name == "device"; };
  const bool given = std::ranges::any_of(attributes, names_device);
  if (!given && device_ != ir::Device()) attributes.emplace_back("device", ir::device_text(device_));
  if (given && OpQuery(graph_, {}, attributes).device("device") == ir::Device()) std::erase_if(attributes, names_device);
}

std::vector<ir::ValueId> NodeBuilder::call(std::string_view name, std::vector<ir::ValueId> operands, ir::Attributes attributes) {
  const Op* op = find_op(name);
  if (!op) throw Exception(error(Code::not_found, "unknown op '{}'", name));
  place(*op, attributes);
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

ir::ValueId NodeBuilder::full(ir::Literal value, DType dtype, ir::Shape size) {
  return one("full", {literal(std::move(value))}, {{"dtype", dtype}, {"size", std::move(size)}});
}

ir::ValueId NodeBuilder::to_device(ir::ValueId value, ir::Device device) {
  if (graph_.type(value).device == device || graph_.value(value).kind == ir::ValueKind::literal) return value;
  return one("to_device", {value}, {{"device", ir::device_text(device)}});
}

ir::ValueId NodeBuilder::constant(const ir::Type& type, std::shared_ptr<const void> bytes) {
  const void* data = bytes.get();
  const ConstantId constant = graph_.add_constant({type, data, std::move(bytes), {}});
  const ir::NodeId node = graph_.add_node("constant", {}, {{"index", ir::Dim(constant.value)}}, {type}, location_, {}, before_);
  return graph_.node(node).results[0];
}

std::vector<ir::ValueId> NodeBuilder::brought_here(std::vector<ir::ValueId> operands) {
  if (device_.is_host()) return operands;
  for (ir::ValueId& v : operands)
    if (graph_.type(v).is_host_scalar()) v = to_device(v, device_);
  return operands;
}

}  // namespace tenon::ops
