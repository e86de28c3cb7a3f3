#include "symbolic_sample.h"

#include <algorithm>
#include <map>

#include "core/ops/build/node_builder.h"
#include "sample_operands.h"
#include "test_inputs.h"

namespace tenon::conformance {
namespace {

using SymbolOfSize = std::map<std::int64_t, ir::Dim>;

bool has_strides(const ops::Sample& sample) {
  return std::ranges::any_of(sample.operands, [](const ops::SampleOperand& operand) { return operand.strides.has_value(); });
}

SymbolOfSize add_symbols(ir::Graph& graph, const ops::Sample& sample) {
  SymbolOfSize symbols;
  for (const ops::SampleOperand& operand : sample.operands)
    for (std::int64_t size : operand.shape)
      if (size > 1 && !operand.literal && !symbols.contains(size))
        symbols.emplace(size, ir::Dim::symbol(graph.add_symbol({.name = {}, .min = 2, .max = 1 << 20})));
  return symbols;
}

ValueId add_symbolic_input(ir::Graph& graph, const ops::SampleOperand& operand, const SymbolOfSize& symbols) {
  ir::Shape shape;
  for (std::int64_t size : operand.shape) shape.push_back(size > 1 ? symbols.at(size) : ir::Dim(size));
  return graph.add_input(ir::Type::tensor(operand.dtype, std::move(shape)));
}

/// The sample with `factor * n + summand` for every size n above 1; nothing when the definitions do not take it (an index beyond the end, say).
std::optional<ops::Sample> resized(const ir::Graph& graph, ops::Sample sample, std::int64_t factor, std::int64_t summand) {
  for (ops::SampleOperand& operand : sample.operands)
    for (std::int64_t& n : operand.shape)
      if (n > 1) n = factor * n + summand;
  try {
    ops::evaluate(graph, views_of(make_inputs(sample, 1, {.row_major = true})), ops::Precision::judge);
  } catch (const Exception&) {
    return {};
  }
  return sample;
}

}  // namespace

std::optional<SymbolicSample> with_symbols(const ops::Op& op, const ops::Sample& sample) {
  if (has_strides(sample)) return {};
  SymbolicSample made;
  const SymbolOfSize symbols = add_symbols(made.graph, sample);
  if (symbols.empty()) return {};
  const auto operands = add_operands(made.graph, sample, [&](std::size_t, const auto& operand) { return add_symbolic_input(made.graph, operand, symbols); });
  try {
    add_outputs(made.graph, ops::NodeBuilder(made.graph).call(op.name, operands, sample.attributes));
  } catch (const Exception&) {
    return {};
  }
  for (const auto& [factor, summand] : {std::pair{1, 0}, std::pair{1, 1}, std::pair{2, 3}})
    if (auto other = resized(made.graph, sample, factor, summand)) made.sizes.push_back(std::move(*other));
  return made;
}

}  // namespace tenon::conformance
