#include "core/ops/gradients/linear.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/ops/build/expand.h"
#include "core/ops/catalog.h"
#include "core/ops/gradients/own_gradients.h"
#include "core/ops/op.h"
#include "core/ops/view.h"

namespace tenon::ops {
namespace {

using ir::NodeId;
using ir::ValueId;

bool is_among(std::string_view op, std::span<const std::string_view> all) { return std::ranges::find(all, op) != all.end(); }

class Linearity {
 public:
  Linearity(const ir::Graph& graph, std::span<const ValueId> of) : graph_(graph), kinds_(graph.value_capacity(), Kind::apart) {
    for (ValueId v : of) kinds_[v.value] = Kind::linear;
    for (NodeId id : graph.nodes()) note(id);
  }

  bool is_linear(ValueId v) const { return kind(v) == Kind::linear || is_zero(v); }

 private:
  enum class Kind : std::uint8_t { apart, linear, other };  // apart: does not depend on what the question is about

  Kind kind(ValueId v) const { return v.value < kinds_.size() ? kinds_[v.value] : Kind::apart; }

  bool is_zero(ValueId v) const {
    const ir::Value& value = graph_.value(v);
    if (value.kind == ir::ValueKind::literal) return value.literal == ir::Literal(0.0) || value.literal == ir::Literal(ir::Dim(0));
    if (value.kind != ir::ValueKind::result) return false;
    const ir::Node& node = graph_.node(value.node);
    if (node.op == "constant") return is_zero(graph_.constants()[static_cast<std::size_t>(std::get<ir::Dim>(*node.attribute("index")).constant())]);
    if (node.op == "full" || node.op == "clone" || node.op == "_to_copy" || node.op == "detach" || is_view(graph_, value.node)) return is_zero(node.operands[0]);
    return false;
  }

  static bool is_zero(const ir::Constant& constant) {
    if (!constant.data) return false;
    std::int64_t bytes = static_cast<std::int64_t>(size_of(constant.type.dtype));
    for (const ir::Dim& d : constant.type.shape) bytes *= d.constant();
    const auto* first = static_cast<const std::byte*>(constant.data);
    return std::all_of(first, first + bytes, [](std::byte b) { return b == std::byte{0}; });
  }

  void note(NodeId id) {
    const ir::Node& node = graph_.node(id);
    const auto depends = [&](Kind k) { return std::ranges::any_of(node.operands, [&](ValueId v) { return kind(v) == k; }); };
    if (!depends(Kind::linear) && !depends(Kind::other)) return;
    if (node.op == "own_gradient") {  // gives its first operands as they are
      for (std::size_t k = 0; k < node.results.size(); ++k) kinds_[node.results[k].value] = kind(node.operands[k]);
      return;
    }
    const bool linear = !depends(Kind::other) && node.regions.empty() && keeps_linear(id, node);
    for (ValueId r : node.results)
      if (kind(r) == Kind::apart) kinds_[r.value] = linear ? Kind::linear : Kind::other;
  }

  bool keeps_linear(NodeId id, const ir::Node& node) const {
    static constexpr std::array<std::string_view, 15> kMoves{"neg", "clone", "_to_copy", "sum", "mean", "cumsum", "index", "gather", "index_select", "embedding", "tril", "triu", "roll", "flip", "upsample"};
    static constexpr std::array<std::string_view, 6> kProducts{"mul", "mm", "bmm", "conv_sum", "conv_weight_sum", "conv_input_sum"};
    const std::span<const ValueId> operands = node.operands;
    const auto all_linear = [&](std::span<const ValueId> some) { return std::ranges::all_of(some, [&](ValueId v) { return is_linear(v); }); };
    const auto all_apart = [&](std::span<const ValueId> some) { return std::ranges::all_of(some, [&](ValueId v) { return kind(v) == Kind::apart; }); };
    const std::string_view op = node.op;
    if (!is_float(graph_.type(node.results[0]).dtype)) return false;
    if (is_view(graph_, id) || is_among(op, kMoves) || op == "div" || (op == "pad" && is_padded_with_zeros(node))) return all_apart(operands.subspan(1));
    if (is_among(op, kProducts)) return std::ranges::count_if(operands, [&](ValueId v) { return kind(v) == Kind::linear; }) == 1;
    if (op == "add" || op == "sub" || op == "cat" || op == "stack" || op == "slice_scatter" || op == "select_scatter") return all_linear(operands);
    if (is_gradient_call(node)) return true;
    if (op == "where") return kind(operands[0]) == Kind::apart && all_linear(operands.subspan(1));
    if (op == "index_put") return all_linear(operands.first(2)) && all_apart(operands.subspan(2));
    if (op == "scatter" || op == "index_add" || op == "index_copy") return is_linear(operands[0]) && kind(operands[1]) == Kind::apart && is_linear(operands[2]) && adds_or_writes(node);
    const Op* known = find_op(op);
    return known && known->decompose && decomposes_into_linear(id, operands);
  }

  static bool adds_or_writes(const ir::Node& node) {
    const ir::Attribute* reduce = node.attribute("reduce");
    const auto* text = reduce ? std::get_if<std::string>(reduce) : nullptr;
    return !text || *text == "sum" || *text == "add" || text->empty();
  }

  static bool is_padded_with_zeros(const ir::Node& node) {
    const ir::Attribute* value = node.attribute("value");
    const double* number = value ? std::get_if<double>(value) : nullptr;
    return !value || (number && *number == 0);
  }

  bool decomposes_into_linear(NodeId id, std::span<const ValueId> operands) const {
    const ir::Graph parts = decomposition(graph_, id);
    std::vector<ValueId> of, values;
    auto input = parts.inputs().begin();
    for (ValueId v : operands) {
      if (graph_.value(v).kind == ir::ValueKind::literal) continue;
      if (kind(v) == Kind::linear) of.push_back(*input);
      ++input;
    }
    for (const ir::Output& o : parts.outputs()) values.push_back(o.value);
    return are_linear(parts, values, of);
  }

  const ir::Graph& graph_;
  std::vector<Kind> kinds_;
};

}  // namespace

bool are_linear(const ir::Graph& graph, std::span<const ValueId> values, std::span<const ValueId> of) {
  const Linearity found(graph, of);
  return std::ranges::all_of(values, [&](ValueId v) { return found.is_linear(v); });
}

}  // namespace tenon::ops
