// Scaled dot product attention and its gradients, made of products and a softmax.
#include <cmath>

#include "core/ops/gradients/gradient.h"
#include "core/ops/gradients/gradients.h"
#include "core/ops/notation/formula.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::Shape;

Shape batch_of(const Shape& shape) { return {shape.begin(), shape.end() - 2}; }

infer::Types infer_attention(const OpQuery& q) {
  infer::require_operands(q, 3, 4);
  q.number("scale");  // a constant
  const Shape &query = q.type(0).shape, &key = q.type(1).shape, &value = q.type(2).shape;
  TENON_USER_CHECK(query.size() >= 2 && key.size() == query.size() && value.size() == query.size(),
                   "scaled_dot_product_attention: query, key and value must have the same number of dimensions, at least 2");
  const DType t = q.type(0).dtype;
  TENON_USER_CHECK(q.operand_count() < 4 || !q.literal(3), "the mask must be a tensor");
  TENON_USER_CHECK(is_float(t) && q.type(1).dtype == t && q.type(2).dtype == t,
                   "scaled_dot_product_attention: Expected query, key, and value to have the same float dtype, but got {}, {} and {}", name_of(t),
                   name_of(q.type(1).dtype), name_of(q.type(2).dtype));
  infer::require_equal(q.graph(), query.back(), key.back(), "the sizes of query and key");
  infer::require_equal(q.graph(), key[key.size() - 2], value[value.size() - 2], "the lengths of key and value");
  Shape shape = infer::broadcast(q.graph(), infer::broadcast(q.graph(), batch_of(query), batch_of(key)), batch_of(value));
  shape.push_back(query[query.size() - 2]);
  if (q.operand_count() == 4) {
    Shape scores = shape;
    scores.push_back(key[key.size() - 2]);
    const Shape both = infer::broadcast(q.graph(), scores, q.type(3).shape);
    TENON_USER_CHECK(both == scores, "output with shape {} doesn't match the broadcast shape {}", infer::text(q.graph(), scores), infer::text(q.graph(), both));
  }
  shape.push_back(value.back());
  return infer::one(q, t, std::move(shape));
}

/// Adds a mask of numbers, or takes -inf where a mask of bools is false.
ir::ValueId masked(NodeBuilder& b, ir::ValueId scores, ir::ValueId mask) {
  if (is_bool(b.graph().type(mask).dtype)) return b.one("where", {mask, scores, b.literal(-INFINITY)});
  return b.one("add", {scores, b.cast(mask, b.graph().type(scores).dtype)});
}

/// Position i sees positions 0 to i.
ir::ValueId causal(NodeBuilder& b, ir::ValueId scores) {
  const Shape shape = b.graph().type(scores).shape;
  const auto positions = [&](const Dim& n, Shape as) {
    const ir::ValueId count = b.one("arange", {}, {{"dtype", DType::i64}, {"end", n}, {"start", Dim(0)}, {"step", Dim(1)}});
    return reshape_to(b, count, std::move(as));
  };
  const Dim rows = shape[shape.size() - 2], columns = shape.back();
  return masked(b, scores, b.one("le", {positions(columns, {Dim(1), columns}), positions(rows, {rows, Dim(1)})}));
}

/// A row that sees nothing attends to nothing: zeros, not nan.
ir::ValueId softmax_of_masked(NodeBuilder& b, ir::ValueId scores, bool masks) {
  const auto last = Dim(static_cast<std::int64_t>(b.graph().type(scores).rank()) - 1);
  const ir::ValueId weights = b.one("softmax", {scores}, {{"dim", last}});
  if (!masks) return weights;
  const ir::ValueId top = b.one("amax", {scores}, {{"dim", std::vector<Dim>{last}}, {"keepdim", true}});
  return b.one("where", {b.one("eq", {top, b.literal(-INFINITY)}), b.literal(0.0), weights});
}

bool has_no_keys(const OpQuery& q) { return q.type(1).shape[q.type(1).rank() - 2] == Dim(0); }

ir::ValueId zeros(NodeBuilder& b, const ir::Type& like) { return b.full(0.0, like.dtype, like.shape); }

/// How much each position takes of each other one, in the type that is computed with. Of the operands of an attention.
ir::ValueId weights_of(NodeBuilder& b, const OpQuery& q) {
  const DType t = compute_type(q.type(0).dtype);
  ir::ValueId scores = b.one("matmul", {b.cast(q.operands()[0], t), transpose_of(b, b.cast(q.operands()[1], t))});
  scores = b.one("mul", {scores, b.literal(q.number("scale"))});
  if (q.flag("is_causal")) scores = causal(b, scores);
  const bool masks = q.operand_count() == 4;
  if (masks) scores = masked(b, scores, q.operands()[3]);
  return softmax_of_masked(b, scores, masks);
}

Values decompose_attention(NodeBuilder& b, const OpQuery& q) {
  if (has_no_keys(q)) return {zeros(b, infer_attention(q)[0])};
  const DType result = q.type(0).dtype;
  const ir::ValueId weights = weights_of(b, q);
  return {b.cast(b.one("matmul", {weights, b.cast(q.operands()[2], compute_type(result))}), result)};
}

/// The query of an attention whose gradients a node gives.
OpQuery attention_of(const OpQuery& q) { return {q.graph(), q.operands().subspan(1), q.attributes()}; }

infer::Types infer_gradients(const OpQuery& q) {
  infer::require_operands(q, 4, 5);
  const OpQuery attention = attention_of(q);
  const ir::Type result = infer_attention(attention)[0];
  TENON_USER_CHECK(q.type(0).dtype == result.dtype, "attention_gradients: the gradient must be of type {}, not {}", name_of(result.dtype), name_of(q.type(0).dtype));
  const Shape &given = q.type(0).shape, &made = result.shape;
  TENON_USER_CHECK(given.size() == made.size(), "attention_gradients: the gradient has {} dimensions, what the attention gave {}", given.size(), made.size());
  for (std::size_t d = 0; d < made.size(); ++d) infer::require_equal(q.graph(), given[d], made[d], "the sizes of the gradient and of what the attention gave");
  infer::Types types;
  for (std::size_t k = 0; k < 3; ++k) types.push_back(infer::one(q, attention.type(k).dtype, attention.type(k).shape)[0]);
  return types;
}

/// With weights w = softmax(s), s = scale q k': v gets w' g, s gets w (g v' - sum(g v' w)), and q and k get that of s times each other.
Values decompose_gradients(NodeBuilder& b, const OpQuery& q) {
  const OpQuery attention = attention_of(q);
  if (has_no_keys(attention)) return {zeros(b, q.type(1)), zeros(b, q.type(2)), zeros(b, q.type(3))};
  const DType t = compute_type(q.type(0).dtype);
  const auto wide = [&](std::size_t k) { return b.cast(q.operands()[k], t); };
  const ir::ValueId weights = weights_of(b, attention), upper = b.one("matmul", {wide(0), transpose_of(b, wide(3))});
  const auto last = static_cast<std::int64_t>(b.graph().type(weights).rank()) - 1;
  const ir::ValueId mean = b.one("sum", {b.one("mul", {upper, weights})}, {{"dim", std::vector<Dim>{Dim(last)}}, {"dtype", t}, {"keepdim", true}});
  const ir::ValueId scores = b.one("mul", {b.one("mul", {b.one("sub", {upper, mean}), weights}), b.literal(q.number("scale"))});
  Values gradients = {b.one("matmul", {scores, wide(2)}), b.one("matmul", {transpose_of(b, scores), wide(1)}), b.one("matmul", {transpose_of(b, weights), wide(0)})};
  for (std::size_t k = 0; k < 3; ++k) gradients[k] = b.cast(sum_to_shape(b, gradients[k], q.type(k + 1).shape), q.type(k + 1).dtype);
  return gradients;
}

/// Every head of key and value serves several heads of the query.
ir::ValueId repeated_heads(ForeignArguments& a, ir::ValueId x, const Dim& heads) {
  const Shape shape = a.type(x).shape;
  const std::size_t at = shape.size() - 3;
  if (shape[at] == heads) return x;
  TENON_USER_CHECK(mod(heads, shape[at]) == Dim(0), "Number of heads in key and value must divide the number of heads in query");
  Shape wide = shape, joined = shape;
  wide.insert(wide.begin() + static_cast<std::ptrdiff_t>(at) + 1, Dim(1));
  const ir::ValueId apart = reshape_to(a.builder(), x, wide);
  wide[at + 1] = floor_div(heads, shape[at]);
  joined[at] = heads;
  return reshape_to(a.builder(), expand_to(a.builder(), apart, wide), joined);
}

Values attention_adapt(ForeignArguments& a) {
  if (a.number("dropout_p", 0) != 0) throw Exception(Code::unsupported, "attention with dropout");
  Values operands{a.value("query"), a.value("key"), a.value("value")};
  const std::size_t rank = a.type(operands[0]).rank();
  TENON_USER_CHECK(rank >= 2, "scaled_dot_product_attention: query must have at least 2 dimensions");
  if (a.flag("enable_gqa") && rank >= 3)
    for (std::size_t i : {1u, 2u}) operands[i] = repeated_heads(a, operands[i], Dim(a.type(operands[0]).shape[rank - 3]));
  const Dim size = a.type(operands[0]).shape.back();
  if (!a.given("scale") && !size.is_constant()) throw Exception(Code::unsupported, "attention of a size that is not known without scale");
  const double scale = a.given("scale") ? a.number("scale", 1) : 1 / std::sqrt(static_cast<double>(size.constant()));
  if (a.given("attn_mask")) {
    TENON_USER_CHECK(!a.flag("is_causal"), "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True");
    operands.push_back(a.value("attn_mask"));
  }
  return a.call("scaled_dot_product_attention", operands, {{"is_causal", a.flag("is_causal")}, {"scale", scale}});
}

std::vector<Sample> attention_samples() {
  std::vector<Sample> all;
  const auto add = [&](std::string name, DType t, std::vector<std::int64_t> q, std::vector<std::int64_t> kv, std::optional<SampleOperand> mask, bool is_causal) {
    Sample s{.name = std::move(name), .attributes = {{"is_causal", is_causal}, {"scale", 0.5}}, .tolerance = 8};
    for (const auto& shape : {q, kv, kv}) s.operands.push_back({.dtype = t, .shape = shape, .fill = Fill::unit});
    if (mask) s.operands.push_back(*mask);
    all.push_back(std::move(s));
  };
  for (DType t : kFloats) add(std::string(name_of(t)), t, {2, 3, 4, 8}, {2, 3, 6, 8}, {}, false);
  add("causal", DType::f32, {2, 5, 4}, {2, 5, 4}, {}, true);
  add("mask", DType::f32, {2, 2, 4, 8}, {2, 2, 6, 8}, SampleOperand{.dtype = DType::b8, .shape = {4, 6}}, false);
  add("bias", DType::f32, {2, 2, 4, 8}, {2, 2, 6, 8}, SampleOperand{.shape = {2, 1, 4, 6}}, false);
  return all;
}

/// For devices on which a library computes them without the weights as a whole.
Op gradients_op() {
  Op op;
  op.name = "attention_gradients";
  op.schema = "(Tensor gradient, Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, *, bool is_causal=False, float scale) -> (Tensor, Tensor, Tensor)";
  op.aliases = names({"tenon._by_torch.attention_gradients"}, "(gradient, query, key, value, attn_mask=None, is_causal=False, scale=None)");
  op.infer = infer_gradients;
  op.traits.is_inferred_whole = true;
  op.decompose = decompose_gradients;
  op.samples = [] {
    std::vector<Sample> all = attention_samples();
    for (Sample& sample : all) {
      std::vector<std::int64_t> shape = sample.operands[0].shape;
      shape.back() = sample.operands[2].shape.back();
      sample.operands.insert(sample.operands.begin(), {.dtype = sample.operands[0].dtype, .shape = std::move(shape), .fill = Fill::unit});
    }
    return all;
  };
  return op;
}

/// A library of a device computes them without the weights as a whole, but for a mask that has one itself.
bool has_gradients_at_once(const OpQuery& q) { return !q.type(0).device.is_host() && !(q.operand_count() == 4 && is_float(q.type(3).dtype)); }

Op attention_op() {
  Op op;
  op.name = "scaled_dot_product_attention";
  op.schema = "(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, *, bool is_causal=False, float scale) -> Tensor";
  op.aliases = names({"torch.nn.functional.scaled_dot_product_attention"},
                     "(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False)", attention_adapt);
  op.infer = infer_attention;
  op.traits.is_inferred_whole = true;
  op.decompose = decompose_attention;
  op.grad = written(gradients::attention);
  op.grad_holds = has_gradients_at_once;
  op.samples = attention_samples;
  return op;
}

}  // namespace

Family attention_ops() { return {attention_op(), gradients_op()}; }

}  // namespace tenon::ops
