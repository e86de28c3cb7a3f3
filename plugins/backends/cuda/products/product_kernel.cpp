#include "products/product_kernel.h"

#include <algorithm>
#include <set>

#include "core/ops/notation/reduce.h"

namespace tenon::cuda {

using namespace codegen;

ProductKernel::ProductKernel(const ContractionStep& step, const ir::Graph& graph, const IndexAlgebra& algebra) : graph_(graph), algebra_(algebra) {
  const Product& product = step.product;
  for (const auto* roles : {&product.batch, &product.rows, &product.columns})
    for (const Role& r : *roles) kernel().outer.push_back(r.loop);
  kernel().inner = product.summed;
  join(product.operations, product.buffers, {}, {});
  sum_up(product);
  if (step.epilogue) follow(product, *step.epilogue);
  else store(product);
}

OpId ProductKernel::add(Operation op) {
  kernel().operations.push_back(std::move(op));
  return static_cast<OpId>(kernel().operations.size() - 1);
}

std::uint32_t ProductKernel::add_sum(OpId a, OpId b, DType dtype) {
  Operation product{.kind = OperationKind::primitive, .primitive = ops::Primitive::mul, .dtype = dtype};
  product.args[0] = a, product.args[1] = b;
  kernel().reductions.push_back({ops::simple_reducer(dtype, 0, ops::Primitive::add), {add(product)}});
  return static_cast<std::uint32_t>(kernel().reductions.size() - 1);
}

std::uint32_t ProductKernel::buffer(ValueId value) {
  auto found = std::ranges::find(made_.buffers, value);
  if (found == made_.buffers.end()) {
    const ir::Type& type = graph_.type(value);
    kernel().buffers.push_back({type.dtype, type.element_count() * Dim(static_cast<std::int64_t>(size_of(type.dtype))), false});
    found = made_.buffers.insert(made_.buffers.end(), value);
  }
  return static_cast<std::uint32_t>(found - made_.buffers.begin());
}

void ProductKernel::sum_up(const Product& product) {
  const DType dtype = compute_type(product.dtype);
  const std::uint32_t number = add_sum(product.a.element, product.b.element, dtype);
  kernel().stages.push_back({StageKind::reduce, {number}, {}});
  kernel().stages.push_back({StageKind::row, {}, {}});
  sum_ = add({.kind = OperationKind::reduced, .dtype = dtype, .payload = std::uint64_t{number} << 16});
  made_.nodes.push_back(product.node);
}

void ProductKernel::store(const Product& product) {
  Dim place = product.offset;
  for (const auto* roles : {&product.batch, &product.rows, &product.columns})
    for (const Role& r : *roles) place = place + r.c * Dim::symbol(r.loop.variable);
  const std::uint32_t to = buffer(product.result);
  kernel().buffers[to].written = true;
  kernel().stages.back().stores.push_back({to, place, sum_});
}

Dim ProductKernel::placed(Dim place, const Places& places, std::size_t first) const {
  for (const auto& [variable, by] : places) place = algebra_.substitute(place, variable, by);
  std::set<std::uint32_t, std::greater<>> computed;  // numbers grow: the greatest is replaced first
  place.for_each_symbol([&](SymbolId s) {
    if (is_value(s)) computed.insert(s.value - kFirstValue);
  });
  for (const std::uint32_t id : computed) place = replace_symbol(place, value_symbol(id), Dim::symbol(value_symbol(static_cast<std::uint32_t>(first + id))));
  return place;
}

OpId ProductKernel::join(std::span<const Operation> operations, std::span<const ValueId> values, const Places& places, const Instead& instead) {
  const auto first = static_cast<std::uint32_t>(kernel().operations.size());
  std::vector<std::uint32_t> buffers;
  for (const ValueId value : values) buffers.push_back(buffer(value));
  for (Operation op : operations) {
    if (std::optional<Operation> other = instead ? instead(op) : std::nullopt) {
      add(*std::move(other));
      continue;
    }
    for (OpId& a : op.args)
      if (a != kNoOp) a += first;
    op.offset = placed(op.offset, places, first);
    if (op.kind == OperationKind::load) op.payload = buffers[op.payload];
    add(std::move(op));
  }
  return first;
}

/// The places of what follows are over its own loops: those of the result.
void ProductKernel::follow(const Product& product, const KernelStep& after) {
  Places places;
  for (const Dim& index : product.index)
    if (!index.is_constant() && places.size() < after.kernel.outer.size()) places.emplace_back(after.kernel.outer[places.size()].variable, index);
  const OpId first = join(after.kernel.operations, after.buffers, places, [&](const Operation& op) { return op.kind == OperationKind::product ? std::optional(kernel().operations[sum_]) : std::nullopt; });
  for (std::size_t i = 0; i < after.buffers.size(); ++i) {
    Buffer& to = kernel().buffers[buffer(after.buffers[i])];
    to.written = to.written || after.kernel.buffers[i].written;
  }
  for (const Stage& stage : after.kernel.stages)
    for (const Store& s : stage.stores) kernel().stages.back().stores.push_back({buffer(after.buffers[s.buffer]), placed(s.offset, places, first), s.value + first});
  std::ranges::copy_if(after.nodes, std::back_inserter(made_.nodes), [&](NodeId id) { return !(id == product.node); });
}

}  // namespace tenon::cuda
