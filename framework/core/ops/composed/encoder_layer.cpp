// The functions that torch.nn.MultiheadAttention and TransformerEncoderLayer call where no gradient is wanted, as what they are made of:
// ATen native/transformers/attention.cpp and transformer.cpp. Those with a mask are left to torch, which takes padded places out.
#include <cmath>

#include "core/ops/notation/formula.h"
#include "core/ops/notation/move.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using V = ir::ValueId;

void require_no_mask(ForeignArguments& a) {
  if (a.given("mask")) throw Exception(Code::unsupported, "attention of a whole layer with a mask");
}

/// The part of the first dimension that begins at `at` times `size`, and is `size` long.
V part_of(ForeignArguments& a, V x, std::int64_t at, const Dim& size) {
  return slice_of(a.builder(), x, 0, {.start = Dim(at) * size, .stop = Dim(at + 1) * size, .step = {}});
}

struct Attended {
  V result, weights;  // weights: (batch, heads, rows, columns); none where they are not asked for
};

/// Query, key and value are (batch, length, width); the weights and biases of their projections are stacked.
Attended attend(ForeignArguments& a, V query, V key, V value, const Dim& heads, bool need_weights) {
  const V weight = a.value("qkv_weight"), bias = a.value("qkv_bias");
  const Dim width = a.integer("embed_dim");
  const V inputs[] = {query, key, value};
  V heads_of[3];
  for (std::int64_t i = 0; i < 3; ++i) {
    const V projected = a.one("linear", {inputs[i], part_of(a, weight, i, width), part_of(a, bias, i, width)});
    const ir::Shape shape = a.type(projected).shape;
    heads_of[i] = permute_by(a.builder(), reshape_to(a.builder(), projected, {shape[0], shape[1], heads, floor_div(width, heads)}), {0, 2, 1, 3});
  }
  const double scale = 1 / std::sqrt(static_cast<double>(floor_div(width, heads).constant()));
  V mixed, weights;
  if (need_weights) {
    const V scores = a.one("mul", {a.one("matmul", {heads_of[0], permute_by(a.builder(), heads_of[1], {0, 1, 3, 2})}), a.builder().literal(scale)});
    weights = a.one("softmax", {scores}, {{"dim", Dim(3)}});
    mixed = a.one("matmul", {weights, heads_of[2]});
  } else {
    mixed = a.one("scaled_dot_product_attention", {heads_of[0], heads_of[1], heads_of[2]}, {{"is_causal", false}, {"scale", scale}});
  }
  const V joined = reshape_to(a.builder(), permute_by(a.builder(), mixed, {0, 2, 1, 3}), a.type(query).shape);
  return {a.one("linear", {joined, a.value("proj_weight"), a.value("proj_bias")}), weights};
}

Values multi_head_attention(ForeignArguments& a) {
  require_no_mask(a);
  const bool need_weights = a.flag("need_weights");
  const auto [result, weights] = attend(a, a.value("query"), a.value("key"), a.value("value"), a.integer("num_head"), need_weights);
  if (!need_weights) return {result};
  if (!a.flag("average_attn_weights")) return {result, weights};
  return {result, a.one("mean", {weights}, {{"dim", std::vector<Dim>{Dim(1)}}, {"dtype", a.type(weights).dtype}, {"keepdim", false}})};
}

Values transformer_encoder_layer(ForeignArguments& a) {
  require_no_mask(a);
  const bool norm_first = a.flag("norm_first");
  const auto norm = [&](V x, std::string_view weight, std::string_view bias) {
    return a.one("layer_norm", {x, a.value(weight), a.value(bias)}, {{"eps", a.number("eps", 1e-5)}, {"normalized_shape", std::vector<Dim>{a.type(x).shape.back()}}});
  };
  const V source = a.value("src");
  V x = norm_first ? norm(source, "norm_weight_1", "norm_bias_1") : source;
  x = a.one("add", {attend(a, x, x, x, a.integer("num_heads"), false).result, source});
  if (!norm_first) x = norm(x, "norm_weight_1", "norm_bias_1");
  V inner = norm_first ? norm(x, "norm_weight_2", "norm_bias_2") : x;
  inner = a.one("linear", {inner, a.value("ffn_weight_1"), a.value("ffn_bias_1")});
  inner = a.flag("use_gelu") ? a.one("gelu", {inner}, {{"approximate", std::string("none")}}) : a.one("relu", {inner});
  x = a.one("add", {a.one("linear", {inner, a.value("ffn_weight_2"), a.value("ffn_bias_2")}), x});
  return {norm_first ? x : norm(x, "norm_weight_2", "norm_bias_2")};
}

}  // namespace

std::vector<Alias> encoder_layer_names() {
  return names({"torch._native_multi_head_attention"},
               "(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias, proj_weight, proj_bias, mask=None, need_weights=True, average_attn_weights=True, mask_type=None)",
               multi_head_attention) +
         names({"torch._transformer_encoder_layer_fwd"},
               "(src, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, use_gelu, norm_first, eps, norm_weight_1, norm_bias_1, norm_weight_2, norm_bias_2, "
               "ffn_weight_1, ffn_bias_1, ffn_weight_2, ffn_bias_2, mask=None, mask_type=None)",
               transformer_encoder_layer);
}

}  // namespace tenon::ops
