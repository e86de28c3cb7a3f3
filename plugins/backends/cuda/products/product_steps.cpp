#include "products/product_steps.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "core/ops/loop_body.h"
#include "core/ops/view.h"
#include "fusion/parallel_reduction.h"
#include "fusion/pruning.h"
#include "loops/merging.h"
#include "products/attention_steps.h"
#include "products/product_kernel.h"
#include "products/rounded_values.h"
#include "schedule/product_tile.h"

namespace tenon::cuda {

using namespace codegen;

namespace {

/// Whether all that an operand loads lies side by side along the loop, or does not move.
bool runs_along(const Kernel& kernel, OpId root, SymbolId loop) {
  const Operation& op = kernel.operations[root];
  const bool moves = op.kind == OperationKind::load && mentions(op.offset, loop);
  return moves ? is_contiguous_or_fixed(op.offset, loop) : std::ranges::any_of(op.args, [&](OpId a) { return a != kNoOp && runs_along(kernel, a, loop); });
}

/// The loop of the sum along which operands lie side by side comes last: the most of them along that.
void order_sum(Kernel& kernel) {
  const Operation& product = kernel.operations[kernel.reductions[0].elements[0]];
  const auto operands_along = [&](const Loop& l) { return (runs_along(kernel, product.args[0], l.variable) ? 1 : 0) + (runs_along(kernel, product.args[1], l.variable) ? 1 : 0); };
  const auto best = std::ranges::max_element(kernel.inner, {}, operands_along);
  if (best != kernel.inner.end() && operands_along(*best) > operands_along(kernel.inner.back())) std::rotate(best, best + 1, kernel.inner.end());
}

/// Of the loops of a right operand that does not lie along the sum, the one along which it lies side by side comes last, whatever the result's order:
/// more is read than written.
void order_columns(Kernel& kernel) {
  const auto sides = product_sides(kernel);
  if (!sides || runs_along(kernel, sides->b, kernel.inner.back().variable) || runs_along(kernel, sides->b, kernel.outer.back().variable)) return;
  const auto lies_along = [&](const Loop& l) { return std::ranges::count(sides->columns, l.variable, &Loop::variable) && runs_along(kernel, sides->b, l.variable); };
  if (const auto found = std::ranges::find_if(kernel.outer, lies_along); found != kernel.outer.end()) std::rotate(found, found + 1, kernel.outer.end());
}

void shape_product(KernelStep& step, IndexAlgebra& algebra) {
  Kernel& kernel = step.kernel;
  order_by_store(kernel, kernel.outer, algebra);
  order_sum(kernel);
  order_columns(kernel);
  merge_contiguous(kernel, kernel.inner, algebra);
  merge_contiguous(kernel, kernel.outer, algebra);
}

}  // namespace

namespace {

/// What a product reads through views and wider forms, where it is rounded to half precision: blocks copy what lies as it is multiplied.
std::optional<ValueId> rounded_to_half(const ir::Graph& graph, ValueId value) {
  while (graph.value(value).kind == ir::ValueKind::result) {
    const NodeId id = graph.value(value).node;
    const ir::Node& node = graph.node(id);
    const bool is_cast = node.op == "_to_copy" && node.operands.size() == 1;
    if (is_cast && is_reduced_float(graph.type(value).dtype) && graph.type(node.operands[0]).dtype == DType::f32) return value;
    if (!is_cast && !ops::is_view(graph, id)) return {};
    value = node.operands[0];
  }
  return {};
}

}  // namespace

std::vector<ValueId> written_for_products(const ir::Graph& graph) {
  const auto permuted = [&](ValueId value) {
    const ir::Value& v = graph.value(value);
    return v.kind == ir::ValueKind::result && graph.node(v.node).op == "permute" ? std::optional(graph.node(v.node)) : std::nullopt;
  };
  const auto is_padded = [&](ValueId value) {
    const ir::Value& v = graph.value(value);
    return v.kind == ir::ValueKind::result && graph.node(v.node).op == "pad";
  };
  const auto last_of = [](const ir::Node& permute) { return static_cast<std::size_t>(std::get<std::vector<Dim>>(*permute.attribute("dims")).back().constant()); };
  const auto users = graph.users();
  std::vector<ValueId> written;
  for (const NodeId id : graph.nodes()) {
    const ir::Node& node = graph.node(id);
    if (const auto body = ops::loop_of(graph, id); body && body->reducer && node.operands.size() == 2)
      for (const ValueId operand : node.operands)
        if (const auto rounded = rounded_to_half(graph, operand)) written.push_back(*rounded);
    if (node.op == "permute" && graph.type(node.results[0]).rank() == 4 && last_of(node) == 1 && !users[node.results[0].value].empty() &&
        std::ranges::all_of(users[node.results[0].value], [&](NodeId user) { return graph.node(user).op == "permute" && last_of(graph.node(user)) == 2; }))
      written.push_back(node.results[0]);  // and back
    if (node.op != "conv_sum" && node.op != "conv_weight_sum") continue;
    for (const ValueId operand : node.operands) {
      const auto back = permuted(operand), last = back ? permuted(back->operands[0]) : std::nullopt;
      if (back && is_padded(back->operands[0])) written.push_back(back->operands[0]);
      if (!last) continue;
      const ir::Shape lies = graph.type(last->operands[0]).resolved_strides();
      if (!(lies[last_of(*last)] == Dim(1))) written.push_back(last->results[0]);
    }
    for (const NodeId user : users[node.results[0].value])
      if (graph.node(user).op == "permute" && last_of(graph.node(user)) == 1) written.push_back(graph.node(user).results[0]);
  }
  return written;
}

void make_kernels_of_products(Plan& plan, const ir::Graph& graph, const Machine& machine, const ProductChoices& choices) {
  make_attention_kernels(plan, graph, machine, choices.rounding.products);
  std::vector<Step> steps;
  for (Step& step : std::exchange(plan.steps, {})) {
    const auto* contraction = std::get_if<ContractionStep>(&step);
    if (!contraction) {
      steps.push_back(std::move(step));
      continue;
    }
    const bool is_convolution = graph.node(contraction->product.node).op.text().starts_with("conv_");
    const bool rounds = is_convolution ? choices.rounding.convolutions : choices.rounding.products;
    KernelStep made = pruned(ProductKernel(*contraction, graph, plan.algebra).take());
    shape_product(made, plan.algebra);
    const std::int64_t blocks = choices.clusters ? cluster_of_product(made.kernel, rounds) : 1, pieces = parts_of_product(made.kernel, rounds, blocks);
    bool sums_products = true;
    for (KernelStep& part : cut_reduction(std::move(made), pieces, plan, graph)) {
      if (sums_products) shape_product(part, plan.algebra);
      if (sums_products && product_sides(part.kernel)) part.kernel.schedule = std::make_shared<Multiplied>(Multiplied::Choices{.rounds = rounds, .blocks = blocks, .by_warpgroups = choices.warpgroups, .over_windows = is_convolution});
      else codegen::shape(part, machine, graph, plan.algebra, {});
      sums_products = false;
      part.starts = take_out_starts(part.kernel);
      steps.push_back(std::move(part));
    }
  }
  plan.steps = std::move(steps);
  round_where_written(plan, graph);
}

}  // namespace tenon::cuda
