#include <cmath>

#include "core/rewrite/constant_values.h"
#include "rule_set.h"

namespace tenon::simplify {
namespace {

using namespace rewrite;

/// x s + t for each channel: what normalising by constants comes to.
struct Affine {
  std::vector<double> scale, shift;
};

bool is_single_or_double(DType dtype) { return dtype == DType::f32 || dtype == DType::f64; }

/// s = weight / sqrt(var + eps), t = bias - mean s; nothing when one of them is no constant, or x is rounded to less than float32.
std::optional<Affine> affine_of(const ir::Graph& graph, const ir::Node& norm) {
  std::vector<const ir::Constant*> constants;
  for (std::size_t i = 1; i < norm.operands.size(); ++i) {
    constants.push_back(constant_of(graph, norm.operands[i]));
    if (!constants.back() || !is_single_or_double(constants.back()->type.dtype)) return {};
  }
  if (!is_single_or_double(graph.type(norm.operands[0]).dtype) || !constants[0]->type.shape[0].is_constant()) return {};
  const ir::Attribute* given = norm.attribute("eps");
  const double* eps = given ? std::get_if<double>(given) : nullptr;
  if (given && !eps) return {};
  const auto channels = static_cast<std::size_t>(constants[0]->type.shape[0].constant());
  Affine affine;
  for (std::size_t c = 0; c < channels; ++c) {
    const double weight = constants.size() > 2 ? element_of(*constants[2], c) : 1, bias = constants.size() > 3 ? element_of(*constants[3], c) : 0;
    const double scale = weight / std::sqrt(element_of(*constants[1], c) + (eps ? *eps : 1e-5));
    affine.scale.push_back(scale);
    affine.shift.push_back(bias - element_of(*constants[0], c) * scale);
  }
  return affine;
}

/// A constant whose element i is what `of` gives for it.
template <class Of>
ValueId add_constant(Match& m, DType dtype, const std::vector<std::int64_t>& shape, Of of) {
  ops::HostTensor tensor(dtype, shape);
  const auto count = static_cast<std::size_t>(tensor.element_count());
  for (std::size_t i = 0; i < count; ++i) {
    if (dtype == DType::f64) tensor.as<double>()[i] = of(i);
    else tensor.as<float>()[i] = static_cast<float>(of(i));
  }
  return add_constant_node(m.rewriter().graph(), m.id(), ir::Type::tensor(dtype, ir::Shape(shape.begin(), shape.end())), std::move(tensor));
}

std::vector<std::int64_t> sizes_of(const ir::Type& type) {
  std::vector<std::int64_t> sizes;
  for (const ir::Dim& d : type.shape) sizes.push_back(d.constant());
  return sizes;
}

bool is_transposed(const ir::Node& convolution) {
  const ir::Attribute* transposed = convolution.attribute("transposed");
  return transposed && std::get<bool>(*transposed);
}

std::optional<ValueId> folded_into_convolution(Match& m) {
  const ir::Graph& graph = m.rewriter().graph();
  const ir::Node* convolution = m.rewriter().definition(m[0]);
  if (!convolution || convolution->op != "convolution" || is_transposed(*convolution)) return {};
  if (m.rewriter().users(m[0]).size() != 1 || m.rewriter().is_output(m[0])) return {};
  const bool biased = convolution->operands.size() == 3;
  const ir::Constant* weight = constant_of(graph, convolution->operands[1]);
  const ir::Constant* bias = biased ? constant_of(graph, convolution->operands[2]) : nullptr;
  if (!weight || (biased && !bias) || !is_single_or_double(weight->type.dtype)) return {};
  const auto affine = affine_of(graph, m.node());
  if (!affine) return {};
  const ir::Constant w = *weight, b = biased ? *bias : ir::Constant{};  // copies: constants move when one is added
  const ir::Attributes attributes = convolution->attributes;
  const ValueId x = convolution->operands[0];
  const DType dtype = w.type.dtype;
  const std::size_t channels = affine->scale.size(), run = channels ? static_cast<std::size_t>(w.type.element_count().constant()) / channels : 1;
  const ValueId scaled = add_constant(m, dtype, sizes_of(w.type), [&](std::size_t i) { return element_of(w, i) * affine->scale[i / run]; });
  const ValueId moved = add_constant(m, dtype, {static_cast<std::int64_t>(channels)},
                                     [&](std::size_t c) { return (biased ? element_of(b, c) * affine->scale[c] : 0) + affine->shift[c]; });
  return m.make("convolution", {x, scaled, moved}, attributes);
}

std::optional<ValueId> scaled_and_shifted(Match& m) {
  const auto affine = affine_of(m.rewriter().graph(), m.node());
  if (!affine) return {};
  const DType dtype = m.type(0).dtype;
  std::vector<std::int64_t> shape(m.type(0).shape.size() - 1, 1);
  shape[0] = static_cast<std::int64_t>(affine->scale.size());
  const ValueId scale = add_constant(m, dtype, shape, [&](std::size_t c) { return affine->scale[c]; });
  const ValueId shift = add_constant(m, dtype, shape, [&](std::size_t c) { return affine->shift[c]; });
  return m.make("add", {m.make("mul", {m[0], scale}), shift});
}

}  // namespace

RuleSet norm_rules() {
  RuleSet rules;
  for (std::size_t operands = 3; operands <= 5; ++operands) {
    std::vector<Pattern> slots;
    for (std::size_t i = 0; i < operands; ++i) slots.push_back(any(i));
    const Pattern norm = op("batch_norm", slots).with_attributes();
    // batch_norm(conv(x, W) + b) = conv(x, W s) + (b s + t), s and t by output channel: both sides round each product of x once, and
    // s W is rounded once more, computed in float64.
    rules.push_back({"batch_norm_of_convolution", norm, folded_into_convolution});
    // batch_norm(x) = x s + t
    rules.push_back({"batch_norm_by_constants", norm, scaled_and_shifted});
  }
  return rules;
}

}  // namespace tenon::simplify
