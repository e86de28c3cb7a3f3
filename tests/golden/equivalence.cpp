#include "equivalence.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/base/error.h"
#include "core/base/float16.h"
#include "core/ops/reference/sample.h"

namespace tenon::golden {
namespace {

constexpr std::uint64_t kSeeds = 4;

/// A sample whose operands are the graph's inputs, with small numbers for the symbols.
ops::Sample inputs_of(const ir::Graph& graph) {
  std::vector<std::int64_t> symbols;
  for (const ir::SymbolInfo& symbol : graph.symbols())
    symbols.push_back(std::clamp<std::int64_t>(3 + static_cast<std::int64_t>(symbols.size()), symbol.min, symbol.max));
  ops::Sample sample;
  for (ValueId input : graph.inputs()) {
    const ir::Type& type = graph.type(input);
    ops::SampleOperand operand{.dtype = type.dtype, .shape = {}, .fill = ops::Fill::special, .bound = 0, .strides = {}, .literal = {}};
    for (const ir::Dim& size : type.shape) operand.shape.push_back(size.evaluate(symbols));
    if (type.strides) {
      operand.strides.emplace();
      for (const ir::Dim& stride : *type.strides) operand.strides->push_back(stride.evaluate(symbols));
    }
    sample.operands.push_back(std::move(operand));
  }
  return sample;
}

/// The outputs, or the message of the failure.
std::variant<std::vector<ops::HostTensor>, std::string> outcome(const ir::Graph& graph, const std::vector<ops::TensorView>& inputs) {
  try {
    return ops::evaluate(graph, inputs);
  } catch (const Exception& failure) {
    if (failure.code() != Code::invalid_argument) throw;
    return failure.what();
  }
}

double number_at(const ops::HostTensor& tensor, std::int64_t i) {
  switch (tensor.dtype) {
    case DType::f64: return tensor.as<double>()[i];
    case DType::f32: return tensor.as<float>()[i];
    case DType::f16: return float_of_half(tensor.as<std::uint16_t>()[i]);
    case DType::bf16: return float_of_bfloat16(tensor.as<std::uint16_t>()[i]);
    default: return 0;
  }
}

std::optional<std::string> difference(const ops::HostTensor& a, const ops::HostTensor& b) {
  if (a.dtype != b.dtype || a.shape != b.shape) return "types differ";
  const std::size_t size = size_of(a.dtype);
  for (std::int64_t i = 0; i < a.element_count(); ++i) {
    const auto* left = static_cast<const std::byte*>(a.data()) + static_cast<std::size_t>(i) * size;
    const auto* right = static_cast<const std::byte*>(b.data()) + static_cast<std::size_t>(i) * size;
    if (std::memcmp(left, right, size) == 0) continue;
    if (std::isnan(number_at(a, i)) && std::isnan(number_at(b, i))) continue;
    return fmt::format("element {}: {} became {}", i, number_at(a, i), number_at(b, i));
  }
  return {};
}

}  // namespace

std::optional<std::string> first_difference(const ir::Graph& before, const ir::Graph& after) {
  const ops::Sample sample = inputs_of(before);
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const auto inputs = ops::sample_inputs(sample, seed);
    std::vector<ops::TensorView> views;
    for (const ops::SampleInput& input : inputs) views.push_back(input.view);
    const auto old_outcome = outcome(before, views);
    const auto new_outcome = outcome(after, views);
    if (old_outcome.index() != new_outcome.index()) return fmt::format("seed {}: one of the two fails", seed);
    if (old_outcome.index() == 1) continue;
    const auto& a = std::get<0>(old_outcome);
    const auto& b = std::get<0>(new_outcome);
    if (a.size() != b.size()) return "the numbers of outputs differ";
    for (std::size_t i = 0; i < a.size(); ++i)
      if (const auto text = difference(a[i], b[i])) return fmt::format("seed {}, output {}: {}", seed, i, *text);
  }
  return {};
}

}  // namespace tenon::golden
