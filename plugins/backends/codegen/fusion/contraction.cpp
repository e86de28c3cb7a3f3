#include "fusion/contraction.h"

namespace tenon::codegen {

using P = ops::Primitive;

namespace {

bool is_plain_sum(const ops::Reducer& reducer) {
  if (reducer.accumulators.size() != 1 || reducer.combine.results.size() != 1 || reducer.finish.results.size() != 1) return false;
  const auto& combine = reducer.combine.instructions[reducer.combine.results[0]];
  const auto& finish = reducer.finish.instructions[reducer.finish.results[0]];
  return combine.op == P::add && finish.op == P::parameter;
}

/// How one outer loop takes part: its strides in a, b and c.
struct LoopRole {
  Dim extent, a, b, c;
  bool in_a() const { return !(a == Dim(0)); }
  bool in_b() const { return !(b == Dim(0)); }
};

/// Takes the loops of one class into one loop where their strides allow; the others become batch loops.
LoopRole take_merged(std::vector<LoopRole>& loops, std::vector<LoopRole>& batch) {
  if (loops.empty()) return {Dim(1), Dim(0), Dim(0), Dim(0)};
  LoopRole merged = loops.back();
  loops.pop_back();
  while (!loops.empty()) {
    LoopRole& next = loops.back();
    const bool fits = next.a == merged.a * merged.extent && next.b == merged.b * merged.extent && next.c == merged.c * merged.extent;
    if (!fits) break;
    merged.extent = merged.extent * next.extent;
    loops.pop_back();
  }
  batch.insert(batch.end(), loops.begin(), loops.end());
  return merged;
}

}  // namespace

bool is_sum_of_products(const ir::Graph& graph, NodeId node, const ops::LoopBody& body) {
  if (!body.reducer || body.reduced != 1 || body.element.results.size() != 1 || !is_plain_sum(*body.reducer)) return false;
  const DType dtype = graph.type(graph.node(node).results[0]).dtype;
  if (dtype != DType::f32 && dtype != DType::f64) return false;
  const auto& all = body.element.instructions;
  const auto& product = all[body.element.results[0]];
  if (product.op != P::mul) return false;
  for (int k = 0; k < 2; ++k) {
    const auto& load = all[product.args[k]];
    if (load.op != P::load || load.masked || graph.type(graph.node(node).operands[load.payload]).dtype != dtype) return false;
  }
  return true;
}

std::optional<ContractionStep> as_contraction(const FusionContext& context, NodeId node) {
  const ops::LoopBody& body = *context.bodies[node.value];
  Draft draft(context);
  const auto index = draft.make_loops(body.extents, body.reduced);
  try {
    draft.add_reduction(node, index);
  } catch (const NotFusable&) {
    return {};
  }
  const OperationList& operations = draft.operations();
  const Kernel kernel = Draft(draft).finish(std::vector<bool>(context.graph.value_capacity(), false));
  const Operation& product = operations[kernel.reductions[0].elements[0]];
  if (product.kind != OperationKind::primitive || product.primitive != P::mul) return {};
  const Operation& a = operations[product.args[0]];
  const Operation& b = operations[product.args[1]];
  if (a.kind != OperationKind::load || b.kind != OperationKind::load || a.masked || b.masked) return {};

  const ValueId result = context.graph.node(node).results[0];
  for (const Operation* load : {&a, &b})  // a cast is not part of a matrix kernel
    if (context.graph.type(draft.buffers()[load->payload]).dtype != context.graph.type(result).dtype) return {};
  const auto c_strides = context.graph.type(result).resolved_strides();
  Dim a_rest = a.offset, b_rest = b.offset;
  auto role = [&](const Dim& variable, const Dim& extent, const Dim& c) -> std::optional<LoopRole> {
    if (variable.is_constant()) return LoopRole{Dim(1), Dim(0), Dim(0), c};
    auto in_a = split_affine(a_rest, variable.as_symbol()), in_b = split_affine(b_rest, variable.as_symbol());
    if (!in_a || !in_b) return {};
    a_rest = in_a->rest, b_rest = in_b->rest;
    return LoopRole{extent, in_a->coefficient, in_b->coefficient, c};
  };
  std::vector<LoopRole> batch, rows, columns;
  for (std::size_t i = 0; i < body.outer(); ++i) {
    auto r = role(index[i], body.extents[i], c_strides[i]);
    if (!r) return {};
    if (index[i].is_constant()) continue;
    (r->in_a() == r->in_b() ? batch : r->in_a() ? rows : columns).push_back(*r);
  }
  auto reduced = role(index.back(), body.extents.back(), Dim(0));
  if (!reduced) return {};
  for (const Dim* rest : {&a_rest, &b_rest}) {
    bool varies = false;
    rest->for_each_symbol([&](SymbolId s) { varies |= !is_graph_symbol(s); });
    if (varies) return {};
  }
  const bool swap = columns.empty() ? !rows.empty() && rows.back().c == Dim(1) && !batch.empty() : !(columns.back().c == Dim(1));
  if (swap) std::swap(rows, columns);
  const LoopRole m = take_merged(rows, batch), n = take_merged(columns, batch);
  if (!(n.c == Dim(1)) && !(n.extent == Dim(1))) return {};
  ContractionStep step;
  step.node = node;
  step.dtype = context.graph.type(result).dtype;
  step.m = m.extent, step.n = n.extent, step.k = reduced->extent;
  const ValueId a_value = draft.buffers()[a.payload], b_value = draft.buffers()[b.payload];
  step.a = {a_value, a_rest, {}, m.a, reduced->a};
  step.b = {b_value, b_rest, {}, reduced->b, n.b};
  if (swap) {
    step.a = {b_value, b_rest, {}, m.b, reduced->b};
    step.b = {a_value, a_rest, {}, reduced->a, n.a};
  }
  step.c_row_stride = m.c;
  step.c = result;
  for (const LoopRole& l : batch) {
    step.batch.push_back(l.extent);
    step.a.batch_strides.push_back(swap ? l.b : l.a);
    step.b.batch_strides.push_back(swap ? l.a : l.b);
    step.c_batch_strides.push_back(l.c);
  }
  return step;
}

}  // namespace tenon::codegen
