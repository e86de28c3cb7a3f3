#include "products/product_steps.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "core/ops/notation/reduce.h"
#include "fusion/parallel_reduction.h"
#include "fusion/pruning.h"
#include "loops/merging.h"
#include "products/rounded_values.h"
#include "schedule/product_tile.h"

namespace tenon::cuda {

using namespace codegen;

namespace {

/// A kernel over all loops of a product, with what follows it at each point of the result.
class ProductKernel {
 public:
  ProductKernel(const ContractionStep& step, const ir::Graph& graph, const IndexAlgebra& algebra) : product_(step.product), graph_(graph), algebra_(algebra) {
    for (const auto* roles : {&product_.batch, &product_.rows, &product_.columns})
      for (const Role& r : *roles) kernel().outer.push_back(r.loop);
    kernel().inner = product_.summed;
    kernel().operations = product_.operations;
    for (const ValueId value : product_.buffers) buffer(value);
    sum_up();
    if (step.epilogue) follow(*step.epilogue);
    else store();
  }

  KernelStep take() { return std::move(made_); }

 private:
  Kernel& kernel() { return made_.kernel; }

  OpId add(Operation op) {
    kernel().operations.push_back(std::move(op));
    return static_cast<OpId>(kernel().operations.size() - 1);
  }

  std::uint32_t buffer(ValueId value) {
    auto found = std::ranges::find(made_.buffers, value);
    if (found == made_.buffers.end()) {
      const ir::Type& type = graph_.type(value);
      kernel().buffers.push_back({type.dtype, type.element_count() * Dim(static_cast<std::int64_t>(size_of(type.dtype))), false});
      found = made_.buffers.insert(made_.buffers.end(), value);
    }
    return static_cast<std::uint32_t>(found - made_.buffers.begin());
  }

  void sum_up() {
    const DType dtype = compute_type(product_.dtype);
    Operation product{.kind = OperationKind::primitive, .primitive = ops::Primitive::mul, .dtype = dtype};
    product.args[0] = product_.a.element, product.args[1] = product_.b.element;
    kernel().reductions.push_back({ops::simple_reducer(dtype, 0, ops::Primitive::add), {add(product)}});
    kernel().stages.push_back({StageKind::reduce, {0}, {}});
    kernel().stages.push_back({StageKind::row, {}, {}});
    sum_ = add({.kind = OperationKind::reduced, .dtype = dtype});
    made_.nodes.push_back(product_.node);
  }

  void store() {
    Dim place = product_.offset;
    for (const auto* roles : {&product_.batch, &product_.rows, &product_.columns})
      for (const Role& r : *roles) place = place + r.c * Dim::symbol(r.loop.variable);
    const std::uint32_t to = buffer(product_.result);
    kernel().buffers[to].written = true;
    kernel().stages.back().stores.push_back({to, place, sum_});
  }

  /// The places of what follows, over the loops of the product.
  Dim placed(Dim place, const Kernel& after, std::size_t first) const {
    std::size_t loop = 0;
    for (const Dim& index : product_.index)
      if (!index.is_constant() && loop < after.outer.size()) place = algebra_.substitute(place, after.outer[loop++].variable, index);
    std::set<std::uint32_t, std::greater<>> computed;  // numbers grow: the greatest is replaced first
    place.for_each_symbol([&](SymbolId s) {
      if (is_value(s)) computed.insert(s.value - kFirstValue);
    });
    for (const std::uint32_t id : computed) place = replace_symbol(place, value_symbol(id), Dim::symbol(value_symbol(static_cast<std::uint32_t>(first + id))));
    return place;
  }

  void follow(const KernelStep& after) {
    const auto first = static_cast<std::uint32_t>(kernel().operations.size());
    std::vector<std::uint32_t> buffers;
    for (std::size_t i = 0; i < after.buffers.size(); ++i) {
      buffers.push_back(buffer(after.buffers[i]));
      kernel().buffers[buffers.back()].written = kernel().buffers[buffers.back()].written || after.kernel.buffers[i].written;
    }
    for (Operation op : after.kernel.operations) {
      if (op.kind == OperationKind::product) op = kernel().operations[sum_];
      for (OpId& a : op.args)
        if (a != kNoOp) a += first;
      op.offset = placed(op.offset, after.kernel, first);
      if (op.kind == OperationKind::load) op.payload = buffers[op.payload];
      add(std::move(op));
    }
    for (const Stage& stage : after.kernel.stages)
      for (const Store& s : stage.stores) kernel().stages.back().stores.push_back({buffers[s.buffer], placed(s.offset, after.kernel, first), s.value + first});
    std::ranges::copy_if(after.nodes, std::back_inserter(made_.nodes), [&](NodeId id) { return !(id == product_.node); });
  }

  const Product& product_;
  const ir::Graph& graph_;
  const IndexAlgebra& algebra_;
  KernelStep made_;
  OpId sum_ = kNoOp;
};

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
      if (sums_products && product_sides(part.kernel)) part.kernel.schedule = std::make_shared<Multiplied>(Multiplied::Choices{rounds, blocks, choices.warpgroups});
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
