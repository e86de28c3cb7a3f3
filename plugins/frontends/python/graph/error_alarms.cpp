#include "python/graph/error_alarms.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

#include "core/ir/outputs.h"
#include "core/ops/build/node_builder.h"
#include "core/ops/catalog.h"
#include "core/ops/infer.h"
#include "python/graph/moving_nodes.h"

namespace tenon::python {
namespace {

using ir::ValueId;

bool divides(std::string_view op) { return op == "floor_divide" || op == "trunc_divide" || op == "remainder" || op == "fmod"; }
bool is_logarithm(std::string_view op) { return op == "log" || op == "log2" || op == "log10" || op == "log1p"; }

/// Whether an instruction calculates with floats: what only loads, chooses or converts integers sets no flag.
bool calculates_with_floats(const ops::ScalarProgram& program, const ops::Instruction& instruction) {
  using ops::Primitive;
  if (instruction.op <= Primitive::load || instruction.op == Primitive::select || instruction.op == Primitive::bit_cast) return false;
  const auto is_float_register = [&](std::uint32_t r) { return is_float(program.instructions[r].dtype); };
  return is_float(instruction.dtype) || std::ranges::any_of(instruction.args, is_float_register);
}

/// What a node computes of integers, if the result may leave their dtype.
std::optional<ops::Primitive> may_overflow(const ir::Graph& graph, ir::NodeId id) {
  using ops::Primitive;
  const ir::Node& node = graph.node(id);
  if (node.results.size() != 1 || !is_int(graph.type(node.results[0]).dtype)) return std::nullopt;
  const auto loop = ops::loop_of(graph, id);
  if (!loop || loop->reducer) return std::nullopt;
  constexpr Primitive kArithmetic[] = {Primitive::add, Primitive::sub, Primitive::mul, Primitive::neg, Primitive::abs, Primitive::floor_div};
  const Primitive last = loop->element.instructions.back().op;
  return std::ranges::find(kArithmetic, last) != std::end(kArithmetic) ? std::optional(last) : std::nullopt;
}

/// Whether a node may set a floating-point flag.
bool meets_float_errors(const ir::Graph& graph, ir::NodeId id) {
  const ir::Node& node = graph.node(id);
  if (node.op == "constant") return false;
  const auto loop = ops::loop_of(graph, id);
  if (!loop || loop->reducer) return true;
  return std::ranges::any_of(loop->element.instructions, [&](const ops::Instruction& i) { return calculates_with_floats(loop->element, i); });
}

class AlarmBuilder {
 public:
  AlarmBuilder(ir::Graph& graph, const FloatErrors& without_flags)
      : graph_(graph), builder_(graph), without_flags_(without_flags), read_(read_values(graph)), folded_(graph.value_capacity(), false) {}

  /// `next`: the node behind it. What is watched is looked at before that: nothing is kept for it.
  void watch(ir::NodeId id, std::optional<ir::NodeId> next, const ErrorHandling& handling) {
    builder_.before(next);
    const FloatErrors& ignored = handling.ignored;  // what the node says nothing of
    const ir::Node node = graph_.node(id);  // nodes are added
    const bool folded = note_folded(node);
    if (node.results.size() != 1) {
      if ((without_flags_ - ignored).any() && meets_float_errors(graph_, id))
        for (ValueId result : node.results)
          if (is_float(graph_.type(result).dtype)) add(not_finite(result));
      return;
    }
    const ir::Type result = graph_.type(node.results[0]);
    if (handling.of_scalars && !ignored.over)
      if (const auto computed = may_overflow(graph_, id)) watch_integers(node, *computed, result.dtype);
    if (divides(node.op) && is_int(result.dtype)) {
      if (!ignored.divide) watch_divisor(node.operands[1]);
      return;
    }
    if (node.op == "_to_copy" && !is_float(result.dtype)) {
      if (!ignored.invalid) watch_cast(node.operands[0], result.dtype);
      return;
    }
    if (!is_float(result.dtype)) return;
    const FloatErrors spoken = kAll - ignored - FloatErrors{.over = is_logarithm(node.op)};
    if (is_logarithm(node.op) && result.dtype != DType::f64) return watch_result(node, spoken, ignored);
    const ops::Op* op = ops::find_op(node.op);
    const bool computes = op && op->body && !only_moves(graph_, id);
    if (computes && (!read_[node.results[0].value] || folded)) return watch_result(node, spoken, ignored);
    if ((without_flags_ - ignored).any() && meets_float_errors(graph_, id)) watch_result(node, without_flags_ - ignored, ignored);
  }

  std::optional<ValueId> alarm() const { return alarm_; }

 private:
  static std::vector<bool> read_values(const ir::Graph& graph) {
    std::vector<bool> read = ir::output_values(graph);
    const auto nodes = graph.nodes();
    for (std::size_t i = nodes.size(); i-- > 0;) {
      const ir::Node& node = graph.node(nodes[i]);
      bool live = false;
      for (ValueId result : node.results) live = live || read[result.value];
      if (live)
        for (ValueId operand : node.operands) read[operand.value] = true;
    }
    return read;
  }

  /// Whether a pass computes the node, which sets no flag when the graph runs: of constants alone.
  bool note_folded(const ir::Node& node) {
    const auto is_constant = [&](ValueId v) { return graph_.value(v).kind == ir::ValueKind::literal || folded_[v.value]; };
    const bool folded = node.op == "constant" || (!node.operands.empty() && std::ranges::all_of(node.operands, is_constant));
    for (ValueId result : node.results) folded_[result.value] = folded;
    return folded;
  }

  static constexpr FloatErrors kAll{true, true, false, true};

  /// Finds errors of these kinds by the node's result: an infinity out of finite numbers, a NaN out of none.
  void watch_result(const ir::Node& node, const FloatErrors& kinds, const FloatErrors& ignored) {
    if (!kinds.any()) return;
    const ops::Op* op = ops::find_op(node.op);
    const bool by_element = (op && op->body && node.operands.size() <= 2) || node.op == "_to_copy";
    if (!ignored.any() && without_flags_ == FloatErrors{}) return add(not_finite(node.results[0]));
    if (!by_element) return add(kinds.divide || kinds.over ? not_finite(node.results[0]) : builder_.one("isnan", {node.results[0]}));
    if (kinds.divide || kinds.over) watch_elements(node, "isinf", "isfinite", true);
    if (kinds.invalid) watch_elements(node, "isnan", "isnan", false);
  }

  /// Adds where `found` holds for the result, and for all operands `asked` gives the answer.
  void watch_elements(const ir::Node& node, const char* found, const char* asked, bool answer) {
    ValueId errors = builder_.one(found, {node.results[0]});
    for (ValueId operand : node.operands) {
      if (!is_float(graph_.type(operand).dtype)) continue;
      if (const auto* number = std::get_if<double>(&graph_.value(operand).literal); graph_.value(operand).kind == ir::ValueKind::literal && number) {
        if (answer ? !std::isfinite(*number) : std::isnan(*number)) return;
        continue;
      }
      ValueId holds = builder_.one(asked, {operand});
      if (!answer) holds = builder_.one("logical_not", {holds});
      errors = builder_.one("logical_and", {errors, holds});
    }
    add(errors);
  }

  ValueId not_finite(ValueId value) { return builder_.one("logical_not", {builder_.one("isfinite", {value})}); }

  void watch_divisor(ValueId divisor) {
    const ir::Value& value = graph_.value(divisor);
    if (const auto* number = std::get_if<ir::Dim>(&value.literal); value.kind == ir::ValueKind::literal && number) {
      const ops::infer::Interval range = ops::infer::range(graph_, *number);
      if (range.least > 0 || range.most < 0) return;
    }
    if (is_bool(graph_.type(divisor).dtype)) return add(builder_.one("logical_not", {divisor}));
    add(builder_.one("eq", {divisor, builder_.literal(ir::Dim(0))}));
  }

  /// Whether the result may lie outside of the dtype: computed in float64, and where that rounds, with room for it.
  void watch_integers(const ir::Node& node, ops::Primitive computed, DType dtype) {
    if (!is_signed_int(dtype) && computed == ops::Primitive::sub) return add(builder_.one("lt", {in_dtype(node.operands[0], dtype), in_dtype(node.operands[1], dtype)}));
    std::vector<ValueId> wide;
    for (ValueId operand : node.operands) wide.push_back(in_dtype(operand, DType::f64));
    const ValueId exact = computed == ops::Primitive::floor_div ? builder_.one("div", wide) : builder_.one(node.op, wide);
    const int bits = static_cast<int>(size_of(dtype)) * 8 - (is_signed_int(dtype) ? 1 : 0);
    const double end = std::ldexp(1.0, bits), room = bits < 53 ? 0 : std::ldexp(1.0, bits - 51);
    const ValueId above = builder_.one("gt", {exact, builder_.literal(is_signed_int(dtype) ? (bits < 53 ? -end - 1.0 : -end + room) : -1.0)});
    const ValueId below = builder_.one("lt", {exact, builder_.literal(end - room)});
    add(builder_.one("logical_not", {builder_.one("logical_and", {above, below})}));
  }

  ValueId in_dtype(ValueId value, DType dtype) { return graph_.value(value).kind == ir::ValueKind::literal ? value : builder_.cast(value, dtype); }

  void watch_cast(ValueId from, DType to) {
    if (!is_float(graph_.type(from).dtype) || !is_int(to)) return;
    const int bits = static_cast<int>(size_of(to)) * 8 - (is_signed_int(to) ? 1 : 0);
    const double end = std::ldexp(1.0, bits);  // exact in every float dtype that reaches it
    const ValueId above = builder_.one("gt", {from, builder_.literal(is_signed_int(to) ? -end - (bits < 53 ? 1.0 : 0.0) : -1.0)});
    const ValueId below = builder_.one("lt", {from, builder_.literal(end)});
    add(builder_.one("logical_not", {builder_.one("logical_and", {above, below})}));
  }

  void add(ValueId errors) {
    if (graph_.type(errors).rank() > 0) errors = builder_.one("any", {errors});
    alarm_ = alarm_ ? builder_.one("logical_or", {*alarm_, errors}) : errors;
  }

  ir::Graph& graph_;
  ops::NodeBuilder builder_;
  FloatErrors without_flags_;  // of which some node says nothing, so that their flags mean nothing
  std::vector<bool> read_, folded_;
  std::optional<ValueId> alarm_;
};

}  // namespace

MetErrors errors_that_may_be_met(const ir::Graph& graph, const ErrorHandlings& handlings) {
  MetErrors met;
  for (ir::NodeId id : graph.nodes()) {
    const ErrorHandling& handling = handlings.of(id);
    if (!divides(graph.node(id).op) && !(handling.of_scalars && may_overflow(graph, id)) && !meets_float_errors(graph, id)) continue;
    met.ignored = met.ignored | handling.ignored;
    met.heard = met.heard | handling.heard;
    met.any |= (FloatErrors{true, true, false, true} - handling.ignored).any();
  }
  return met;
}

std::optional<ValueId> add_error_alarm(ir::Graph& graph, const ErrorHandlings& handlings) {
  FloatErrors without_flags;
  if (!handlings.empty()) without_flags = errors_that_may_be_met(graph, handlings).ignored - FloatErrors{.under = true};
  AlarmBuilder builder(graph, without_flags);
  const std::vector<ir::NodeId> nodes(graph.nodes().begin(), graph.nodes().end());
  for (std::size_t i = 0; i < nodes.size(); ++i) builder.watch(nodes[i], i + 1 < nodes.size() ? std::optional(nodes[i + 1]) : std::nullopt, handlings.of(nodes[i]));
  return builder.alarm();
}

}  // namespace tenon::python
