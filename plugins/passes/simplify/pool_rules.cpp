#include <algorithm>

#include "rule_set.h"

namespace tenon::simplify {
namespace {

using namespace rewrite;

/// True when the attribute is not given, or all its integers are `value`.
bool all_are(const ir::Node& node, std::string_view name, std::int64_t value) {
  const ir::Attribute* given = node.attribute(name);
  if (!given) return true;
  const auto* list = std::get_if<std::vector<ir::Dim>>(given);
  return list && std::all_of(list->begin(), list->end(), [&](const ir::Dim& d) { return d == ir::Dim(value); });
}

bool is_set(const ir::Node& node, std::string_view name) {
  const ir::Attribute* given = node.attribute(name);
  const bool* flag = given ? std::get_if<bool>(given) : nullptr;
  return given && (!flag || *flag);
}

/// A convolution that mixes the channels of each pixel alone.
bool is_pointwise(const ir::Graph& graph, const ir::Node& node) {
  if (node.op != "convolution" || is_set(node, "transposed")) return false;
  const ir::Type &x = graph.type(node.operands[0]), &weight = graph.type(node.operands[1]);
  const bool one_tap = std::all_of(weight.shape.begin() + 2, weight.shape.end(), [](const ir::Dim& d) { return d == ir::Dim(1); });
  return one_tap && all_are(node, "stride", 1) && all_are(node, "padding", 0) && (x.dtype == DType::f32 || x.dtype == DType::f64);
}

/// Windows that lie inside the picture and divide by their own size.
bool averages_whole_windows(const ir::Node& pool) {
  return all_are(pool, "padding", 0) && !is_set(pool, "ceil_mode") && !pool.attribute("divisor_override");
}

std::optional<ValueId> pool_before_convolution(Match& m) {
  const ir::Graph& graph = m.rewriter().graph();
  const ir::Node* convolution = m.rewriter().definition(m[0]);
  if (!convolution || !averages_whole_windows(m.node()) || !is_pointwise(graph, *convolution)) return {};
  if (m.rewriter().users(m[0]).size() != 1 || m.rewriter().is_output(m[0])) return {};
  const ir::Dim pixels = graph.type(m[0]).element_count(), pooled = m.type().element_count();
  if (!pixels.is_constant() || !pooled.is_constant() || pooled.constant() * 2 > pixels.constant()) return {};
  const ir::Attributes attributes = convolution->attributes, windows = m.node().attributes;
  std::vector<ValueId> operands = convolution->operands;
  operands[0] = m.make("avg_pool", {operands[0]}, windows);
  return m.make("convolution", operands, attributes);
}

}  // namespace

RuleSet pool_rules() {
  // mean(W x + b) = W mean(x) + b: where windows do not overlap much, fewer pixels are multiplied.
  return {{"average_of_pointwise_convolution", op("avg_pool", {any(0)}).with_attributes(), pool_before_convolution}};
}

}  // namespace tenon::simplify
