// Softmax and the normalisations of networks, made of reductions and pointwise ops. The smaller floats compute in float32.
#include <algorithm>
#include <limits>
#include <numeric>

#include "core/ops/gradients/gradients.h"
#include "core/ops/notation/formula.h"
#include "core/ops/notation/moments.h"
#include "core/ops/notation/move.h"
#include "core/ops/notation/running_statistics.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::Shape;

void require_float(const OpQuery& q) {
  TENON_USER_CHECK(is_float(infer::shared_dtype(q)), "takes float tensors, not {}", name_of(q.type(0).dtype));
}

ir::Attributes over(std::vector<Dim> dims, bool keep = true) { return {{"dim", std::move(dims)}, {"keepdim", keep}}; }

ir::Attributes over_as(std::vector<Dim> dims, DType t) { return {{"dim", std::move(dims)}, {"dtype", t}, {"keepdim", true}}; }

// ---- softmax

/// exp(x - max), which cannot overflow, over its sum. The logarithm: x - max - log(sum).
Values softmax(NodeBuilder& b, const OpQuery& q, bool logarithm) {
  const DType result = q.type(0).dtype, t = compute_type(result);
  const std::vector<Dim> dim{Dim(infer::wrap_dim(q.constant_integer("dim"), q.type(0).rank()))};
  const ir::ValueId x = b.cast(q.operands()[0], t);
  if (q.type(0).rank() == 0) return {b.full(logarithm ? 0.0 : 1.0, result, {})};
  if (q.type(0).shape[static_cast<std::size_t>(dim[0].constant())] == Dim(0)) return {q.operands()[0]};
  const ir::ValueId shifted = b.one("sub", {x, b.one("amax", {x}, over(dim))});
  const ir::ValueId power = b.one("exp", {shifted});
  const ir::ValueId total = b.one("sum", {power}, over_as(dim, t));
  const ir::ValueId y = logarithm ? b.one("sub", {shifted, b.one("log", {total})}) : b.one("div", {power, total});
  return {b.cast(y, result)};
}

Adapt softmax_adapt(std::string op, bool negated = false) {
  return [=](ForeignArguments& a) {
    ir::ValueId x = a.value("self");
    if (const auto dtype = a.dtype("dtype")) x = a.builder().cast(x, *dtype);
    TENON_USER_CHECK(is_float(a.type(x).dtype), "\"softmax_lastdim_kernel_impl\" not implemented for '{}'", name_of(a.type(x).dtype));
    if (!a.given("dim")) throw Exception(Code::unsupported, "softmax without a dimension");
    if (negated) x = a.one("neg", {x});
    return a.call(op, {x}, {{"dim", Dim(a.dim("dim", a.type(x).rank()))}});
  };
}

/// Rows that are -inf everywhere give 0.
Values safe_softmax(ForeignArguments& a) {
  ir::ValueId x = a.value("self");
  if (const auto dtype = a.dtype("dtype")) x = a.builder().cast(x, *dtype);
  const ir::Type type = a.type(x);
  if (!is_float(type.dtype) || type.rank() == 0) throw Exception(Code::unsupported, "a safe softmax of these operands");
  const Dim dim(a.dim("dim", type.rank()));
  if (type.shape[static_cast<std::size_t>(dim.constant())] == Dim(0)) return a.call("softmax", {x}, {{"dim", dim}});
  const ir::ValueId top = a.one("amax", {x}, {{"dim", std::vector<Dim>{dim}}, {"keepdim", true}});
  const ir::ValueId nothing = a.one("eq", {top, a.builder().literal(-std::numeric_limits<double>::infinity())});
  const ir::ValueId y = a.one("softmax", {a.builder().one("where", {nothing, a.builder().literal(0.0), x})}, {{"dim", dim}});
  return {a.builder().one("where", {nothing, a.builder().full(0.0, type.dtype, {}), y})};
}

Op softmax_op(std::string name, bool logarithm) {
  Op op;
  op.traits.layout = ResultLayout::row_major;
  op.schema = "(Tensor self, int dim) -> Tensor";
  const Adapt adapt = softmax_adapt(name);
  op.aliases = torch_names(name, "(self, dim, dtype=None)", adapt) +
               names({"torch.nn.functional." + name}, "(input -> self, dim=None, _stacklevel=3, dtype=None)", adapt) +
               names({"torch.special." + name}, "(self, dim, *, dtype=None)", adapt) +
               names({"torch._" + name}, "(self, dim, half_to_float=False)", adapt);
  if (!logarithm)
    op.aliases = op.aliases +
                 names({"torch.nn.functional.softmin"}, "(input -> self, dim=None, _stacklevel=3, dtype=None)", softmax_adapt(name, true)) +
                 names({"torch._safe_softmax", "aten._safe_softmax.default"}, "(self, dim, dtype=None)", safe_softmax);
  op.name = std::move(name);
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 1, 1);
    require_float(q);
    infer::wrap_dim(q.constant_integer("dim"), q.type(0).rank());
    return infer::one(q, q.type(0).dtype, q.type(0).shape);
  };
  op.traits.is_inferred_whole = true;
  op.decompose = [logarithm](NodeBuilder& b, const OpQuery& q) { return softmax(b, q, logarithm); };
  op.grad = written(logarithm ? gradients::log_softmax : gradients::softmax);
  op.samples = [] {
    std::vector<Sample> all;
    for (DType t : kFloats)
      for (std::int64_t dim : {0, -1})
        all.push_back({.name = fmt::format("{}_{}", name_of(t), dim),
                       .operands = {{.dtype = t, .shape = {5, 9}}},
                       .attributes = {{"dim", Dim(dim)}}});
    all.push_back({.name = "middle", .operands = {{.shape = {2, 7, 3}}}, .attributes = {{"dim", Dim(1)}}});
    all.push_back({.name = "scalar", .operands = {{.shape = {}}}, .attributes = {{"dim", Dim(0)}}});
    all.push_back({.name = "nothing", .operands = {{.shape = {3, 0}}}, .attributes = {{"dim", Dim(1)}}});
    return all;
  };
  return op;
}

// ---- layer_norm, rms_norm

/// (x - mean) / sqrt(variance + eps) over some dimensions, which the statistics keep with size 1. The mean of the distances from the mean, which is
/// what rounding has left, is taken off again: in a row far from zero it may be as large as what is left of the row.
struct Standardised {
  ir::ValueId value, mean, variance;
};
Standardised standardise(NodeBuilder& b, ir::ValueId x, const std::vector<Dim>& dims, double eps) {
  const ir::Attributes over = over_as(dims, b.graph().type(x).dtype);
  const ir::ValueId mean = b.one("mean", {x}, over), distance = b.one("sub", {x, mean});
  const ir::ValueId left = b.one("mean", {distance}, over), square = b.one("mean", {b.one("mul", {distance, distance})}, over);
  const ir::ValueId variance = b.one("maximum", {b.one("sub", {square, b.one("mul", {left, left})}), b.literal(0.0)});
  const ir::ValueId scale = b.one("rsqrt", {b.one("add", {variance, b.literal(eps)})});
  return {b.one("mul", {b.one("sub", {distance, left}), scale}), b.one("add", {mean, left}), variance};
}

/// x * weight + bias, as far as they are among the operands from `first` on, reshaped to `shape`.
ir::ValueId affine(NodeBuilder& b, const OpQuery& q, ir::ValueId x, std::size_t first, const Shape& shape) {
  const DType t = b.graph().type(x).dtype;
  const auto operand = [&](std::size_t i) { return reshape_to(b, b.cast(q.operands()[i], t), shape); };
  if (q.operand_count() > first) x = b.one("mul", {x, operand(first)});
  if (q.operand_count() > first + 1) x = b.one("add", {x, operand(first + 1)});
  return x;
}

/// Weight and bias, the operands from the second on, have an element for each of `shape`; eps is known.
void require_affine(const OpQuery& q, const Shape& shape) {
  q.number("eps", 1e-5);
  for (std::size_t i = 1; i < q.operand_count(); ++i)
    infer::require_equal(q.graph(), ir::product(q.type(i).shape), ir::product(shape), i == 1 ? "elements of the weight and of what is normalised" : "elements of the bias and of what is normalised");
}

Result<infer::Types> infer_last_dims(const OpQuery& q) {
  require_float(q);
  const auto normalised = q.integers("normalized_shape");
  const Shape& shape = q.type(0).shape;
  TENON_USER_CHECK(normalised.size() <= shape.size() && !normalised.empty(), "normalized_shape {} for an input of shape {}",
                   infer::text(q.graph(), normalised), infer::text(q.graph(), shape));
  for (std::size_t d = 0; d < normalised.size(); ++d)
    infer::require_equal(q.graph(), normalised[d], shape[shape.size() - normalised.size() + d],
                         "normalized_shape and the input's last dimensions");
  require_affine(q, normalised);
  return infer::one(q, q.type(0).dtype, shape);
}

/// Operands of a normalisation: the bias without a weight needs a weight of ones.
Values with_affine(ForeignArguments& a, Values operands, const Shape& shape) {
  for (const char* name : {"weight", "bias"}) {
    if (!a.given(name)) continue;
    const Shape given = a.type(a.value(name)).shape;
    TENON_USER_CHECK(given.size() == shape.size(), "Expected {} to be of same shape as normalized_shape, but got {} dimensions", name, given.size());
    for (std::size_t d = 0; d < shape.size(); ++d) infer::require_equal(a.graph(), given[d], shape[d], fmt::format("sizes of the {}", name));
  }
  if (a.given("bias") && !a.given("weight"))
    operands.push_back(a.builder().full(1.0, a.type(operands[0]).dtype, shape));
  if (a.given("weight")) operands.push_back(a.value("weight"));
  if (a.given("bias")) operands.push_back(a.value("bias"));
  return operands;
}

/// A normalisation whose parameters may be float32 beside an input of a smaller float: ATen's kernels for the CPU take these (`is_mixed_type`), compute in
/// float32 all the same, and give the type of the input.
Values normalised(ForeignArguments& a, const char* op, const Shape& parameters, ir::Attributes attributes) {
  const ir::ValueId x = a.value("input");
  const ir::Type type = a.type(x);
  Values operands = with_affine(a, {x}, parameters);
  const bool mixed = type.device.is_host() && is_reduced_float(type.dtype) && operands.size() > 1 && std::all_of(operands.begin() + 1, operands.end(), [&](ir::ValueId v) { return a.type(v).dtype == DType::f32; });
  if (!mixed) return a.call(op, std::move(operands), std::move(attributes));
  operands[0] = a.builder().cast(x, DType::f32);
  return {a.builder().cast(a.builder().one(op, operands, std::move(attributes)), type.dtype)};
}

Op layer_norm_op() {
  Op op;
  op.name = "layer_norm";
  op.traits.layout = ResultLayout::row_major;
  op.schema = "(Tensor input, Tensor? weight=None, Tensor? bias=None, *, int[] normalized_shape, float eps=1e-05) -> Tensor";
  op.aliases = statistics_names() + names({"torch.layer_norm", "torch.nn.functional.layer_norm"},
                     "(input, normalized_shape, weight=None, bias=None, eps=1e-05, cudnn_enable=True)", [](ForeignArguments& a) {
                       const auto shape = a.integers("normalized_shape");
                       return normalised(a, "layer_norm", shape, {{"eps", a.number("eps", 1e-5)}, {"normalized_shape", shape}});
                     }) + encoder_layer_names();
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 1, 3);
    return infer_last_dims(q);
  };
  op.traits.is_inferred_whole = true;
  op.decompose = [](NodeBuilder& b, const OpQuery& q) -> Values {
    const DType result = q.type(0).dtype;
    const auto shape = q.integers("normalized_shape");
    const std::vector<Dim> rows = last_dims(q.type(0).rank(), shape.size());
    const ir::ValueId x = standardise(b, b.cast(q.operands()[0], compute_type(result)), rows, q.number("eps", 1e-5)).value;
    const bool weight_alone = q.operand_count() == 2;
    ir::ValueId y = affine(b, q, x, 1, shape);
    if (weight_alone) y = b.one("add", {y, b.literal(0.0)});  // ATen adds a bias of zeros: -0 becomes 0
    return {b.cast(y, result)};
  };
  op.samples = [] {
    std::vector<Sample> all;
    for (DType t : kFloats) {
      all.push_back({.name = fmt::format("affine_{}", name_of(t)),
                     .operands = {{.dtype = t, .shape = {4, 10}}, {.dtype = t, .shape = {10}}, {.dtype = t, .shape = {10}}},
                     .attributes = {{"eps", 1e-5}, {"normalized_shape", std::vector<Dim>{10}}},
                     .tolerance = 4});
      all.push_back({.name = fmt::format("plain_{}", name_of(t)),
                     .operands = {{.dtype = t, .shape = {3, 4, 5}}},
                     .attributes = {{"eps", 1e-5}, {"normalized_shape", std::vector<Dim>{4, 5}}},
                     .tolerance = 4});
    }
    return all;
  };
  return op;
}

Op rms_norm_op() {
  Op op;
  op.name = "rms_norm";
  op.traits.layout = ResultLayout::row_major_of_row_major;
  op.schema = "(Tensor input, Tensor? weight=None, *, int[] normalized_shape, float eps) -> Tensor";
  op.aliases = names({"torch.rms_norm", "torch.nn.functional.rms_norm"}, "(input, normalized_shape, weight=None, eps=None)",
                     [](ForeignArguments& a) {
                       const DType t = a.type(a.value("input")).dtype;
                       // torch's default is the machine epsilon of the dtype it computes in.
                       const double epsilon = t == DType::f64 ? 2.220446049250313e-16 : 1.1920928955078125e-07;
                       return a.call("rms_norm", with_affine(a, {a.value("input")}, a.integers("normalized_shape")),
                                     {{"eps", a.number("eps", epsilon)}, {"normalized_shape", a.integers("normalized_shape")}});
                     });
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 1, 2);
    return infer_last_dims(q);
  };
  op.traits.is_inferred_whole = true;
  op.decompose = [](NodeBuilder& b, const OpQuery& q) -> Values {
    const DType result = q.type(0).dtype, t = compute_type(result);
    const auto shape = q.integers("normalized_shape");
    const ir::ValueId x = b.cast(q.operands()[0], t);
    const ir::ValueId power = b.one("mean", {b.one("mul", {x, x})}, over_as(last_dims(q.type(0).rank(), shape.size()), t));
    const ir::ValueId y = b.one("mul", {x, b.one("rsqrt", {b.one("add", {power, b.literal(q.number("eps"))})})});
    return {b.cast(affine(b, q, y, 1, shape), result)};
  };
  op.samples = [] {
    std::vector<Sample> all;
    for (DType t : kFloats)
      all.push_back({.name = std::string(name_of(t)),
                     .operands = {{.dtype = t, .shape = {4, 10}}, {.dtype = t, .shape = {10}}},
                     .attributes = {{"eps", 1e-5}, {"normalized_shape", std::vector<Dim>{10}}},
                     .tolerance = 4});
    return all;
  };
  return op;
}

// ---- batch_norm, group_norm

/// [C] as a shape that broadcasts against [N, C, …].
Shape channel_shape(const Shape& input) {
  Shape shape(input.size() - 1, Dim(1));
  shape[0] = input[1];
  return shape;
}

/// The same in one sweep over float32, with the moments rounded.
Standardised standardise_in_one_sweep(NodeBuilder& b, ir::ValueId x, const std::vector<Dim>& dims, double eps) {
  const MeanAndVariance moments = moments_over(b, x, dims);
  const ir::ValueId variance = b.cast(moments.variance, DType::f32), centre = b.cast(moments.mean, DType::f32);
  const ir::ValueId scale = b.one("rsqrt", {b.one("add", {variance, b.literal(eps)})});
  return {b.one("mul", {b.one("sub", {x, centre}), scale}), centre, variance};
}

/// Normalises by the batch's own mean and variance, and updates the running ones.
ir::ValueId by_batch_statistics(ForeignArguments& a, ir::ValueId x) {
  const DType result = a.type(x).dtype;
  std::vector<Dim> dims{Dim(0)};
  for (std::size_t d = 2; d < a.type(x).rank(); ++d) dims.emplace_back(static_cast<std::int64_t>(d));
  const Shape channels = channel_shape(a.type(x).shape);
  const ir::ValueId computed = a.builder().cast(x, compute_type(result));
  const double eps = a.number("eps", 1e-5);
  const bool one_sweep = compute_type(result) == DType::f32;
  const Standardised batch = one_sweep ? standardise_in_one_sweep(a.builder(), computed, dims, eps) : standardise(a.builder(), computed, dims, eps);
  Dim count = a.type(x).shape[0];
  for (std::size_t d = 2; d < a.type(x).rank(); ++d) count = count * a.type(x).shape[d];
  if (a.flag("training")) update_running_statistics(a, {batch.mean, batch.variance, count}, false);
  ir::ValueId y = batch.value;
  if (a.given("weight")) y = a.one("mul", {y, reshape_to(a.builder(), a.value("weight"), channels)});
  if (a.given("bias")) y = a.one("add", {y, reshape_to(a.builder(), a.value("bias"), channels)});
  return a.builder().cast(y, result);
}

Values batch_norm_adapt(ForeignArguments& a) {
  const ir::ValueId x = a.value("input");
  TENON_USER_CHECK(is_float(a.type(x).dtype), "batch_norm takes floats, not {}", name_of(a.type(x).dtype));
  if (a.type(x).rank() < 2) throw Exception(Code::unsupported, "batch_norm of fewer than two dimensions");
  TENON_USER_CHECK(!(a.number("eps", 1e-5) < 0), "batch_norm eps must be non-negative, but got {}", a.number("eps", 1e-5));
  const bool running = a.given("running_mean") && a.given("running_var");
  for (const char* statistic : {"running_mean", "running_var"}) TENON_USER_CHECK(!a.given(statistic) || a.type(a.value(statistic)).rank() == 1, "batch_norm takes {} with one dimension", statistic);
  if (a.flag("training") || !running) {
    require_several_values(a.graph(), a.type(x).shape, a.type(x).shape[1]);
    return {by_batch_statistics(a, x)};
  }
  Values operands{x, a.value("running_mean"), a.value("running_var")};
  return a.call("batch_norm", with_affine(a, operands, {a.type(x).shape[1]}), {{"eps", a.number("eps", 1e-5)}});
}

/// Normalises by given statistics: x * scale + shift, with the channels' scale and shift computed first.
Values batch_norm(NodeBuilder& b, const OpQuery& q) {
  const DType result = q.type(0).dtype, t = compute_type(result);
  const auto operand = [&](std::size_t i) { return b.cast(q.operands()[i], t); };
  ir::ValueId scale = b.one("rsqrt", {b.one("add", {operand(2), b.literal(q.number("eps", 1e-5))})});
  if (q.operand_count() > 3) scale = b.one("mul", {scale, operand(3)});
  const ir::ValueId moved = b.one("mul", {operand(1), scale});
  const ir::ValueId shift = q.operand_count() > 4 ? b.one("sub", {operand(4), moved}) : b.one("neg", {moved});
  const Shape channels = channel_shape(q.type(0).shape);
  const ir::ValueId y = b.one("add", {b.one("mul", {operand(0), reshape_to(b, scale, channels)}), reshape_to(b, shift, channels)});
  return {b.cast(y, result)};
}

Op batch_norm_op() {
  Op op;
  op.name = "batch_norm";
  op.traits.layout = ResultLayout::row_major_of_row_major;
  op.schema =
      "(Tensor input, Tensor running_mean, Tensor running_var, Tensor? weight=None, Tensor? bias=None, *, float eps=1e-05) -> Tensor";
  op.aliases =
      names({"torch.batch_norm"}, "(input, weight=None, bias=None, running_mean=None, running_var=None, training, momentum, eps, cudnn_enabled=False)",
            batch_norm_adapt) +
      names({"torch.nn.functional.batch_norm"},
            "(input, running_mean=None, running_var=None, weight=None, bias=None, training=False, momentum=0.1, eps=1e-05)", batch_norm_adapt);
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 3, 5);
    q.number("eps", 1e-5);
    TENON_USER_CHECK(is_float(q.type(0).dtype) && q.type(0).rank() >= 2, "takes a float tensor of at least 2 dimensions");
    for (std::size_t i = 1; i < q.operand_count(); ++i) {
      TENON_USER_CHECK(q.type(i).rank() == 1, "operand {} must have one dimension, not {}", i, q.type(i).rank());
      infer::require_equal(q.graph(), q.type(i).shape[0], q.type(0).shape[1], "the number of channels");
    }
    return infer::one(q, q.type(0).dtype, q.type(0).shape);
  };
  op.traits.is_inferred_whole = true;
  op.decompose = batch_norm;
  op.samples = [] {
    std::vector<Sample> all;
    for (DType t : kFloats)
      all.push_back({.name = fmt::format("affine_{}", name_of(t)),
                     .operands = {{.dtype = t, .shape = {2, 3, 4, 4}},
                                  {.dtype = t, .shape = {3}},
                                  {.dtype = t, .shape = {3}, .fill = Fill::positive},
                                  {.dtype = t, .shape = {3}},
                                  {.dtype = t, .shape = {3}}},
                     .attributes = {{"eps", 1e-5}},
                     .tolerance = 8});
    all.push_back({.name = "plain",
                   .operands = {{.shape = {5, 3}}, {.shape = {3}}, {.shape = {3}, .fill = Fill::positive}},
                   .attributes = {{"eps", 1e-3}},
                   .tolerance = 8});
    return all;
  };
  return op;
}

/// Groups of one element, each of which is its own mean: x * scale + shift would leave what rounding leaves of a large x.
ir::ValueId of_single_elements(NodeBuilder& b, ir::ValueId x, std::optional<ir::ValueId> weight, std::optional<ir::ValueId> bias) {
  const Shape channels = channel_shape(b.graph().type(x).shape);
  const auto of_channels = [&](ir::ValueId v) { return reshape_to(b, b.cast(v, b.graph().type(x).dtype), channels); };
  ir::ValueId y = b.one("sub", {x, x});
  if (weight) y = b.one("mul", {y, of_channels(*weight)});
  if (bias) y = b.one("add", {y, of_channels(*bias)});
  return y;
}

Op group_norm_op() {
  Op op;
  op.name = "group_norm";
  op.traits.layout = ResultLayout::memory_format;
  op.schema = "(Tensor input, Tensor? weight=None, Tensor? bias=None, *, int num_groups, float eps=1e-05) -> Tensor";
  op.aliases = names({"torch.group_norm", "torch.nn.functional.group_norm"},
                     "(input, num_groups, weight=None, bias=None, eps=1e-05, cudnn_enabled=True)", [](ForeignArguments& a) {
                       const ir::ValueId x = a.value("input");
                       const Dim groups = a.integer("num_groups");
                       require_several_values(a.graph(), a.type(x).shape, groups);
                       return normalised(a, "group_norm", {a.type(x).shape.at(1)}, {{"eps", a.number("eps", 1e-5)}, {"num_groups", groups}});
                     });
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 1, 3);
    require_float(q);
    TENON_USER_CHECK(q.type(0).rank() >= 2, "takes a tensor of at least 2 dimensions, not {}", q.type(0).rank());
    const Dim channels = q.type(0).shape[1];
    const std::int64_t groups = q.constant_integer("num_groups");
    TENON_USER_CHECK(groups > 0 && infer::is_divisible(channels, Dim(groups)),
                     "Expected number of channels in input to be divisible by num_groups, but got {} channels and num_groups={}",
                     infer::text(q.graph(), channels), groups);
    require_affine(q, {channels});
    return infer::one(q, q.type(0).dtype, q.type(0).shape);
  };
  op.traits.is_inferred_whole = true;
  op.decompose = [](NodeBuilder& b, const OpQuery& q) -> Values {
    const DType result = q.type(0).dtype;
    const ir::ValueId x = b.cast(q.operands()[0], compute_type(result));
    const auto operand = [&](std::size_t i) { return q.operand_count() > i ? std::optional(q.operands()[i]) : std::nullopt; };
    const Shape& shape = q.type(0).shape;
    if (ir::product(Shape(shape.begin() + 1, shape.end())) == q.integer("num_groups")) return {b.cast(of_single_elements(b, x, operand(1), operand(2)), result)};
    const MeanAndVariance moments = moments_of_groups(b, x, q.integer("num_groups"));
    return {b.cast(normalise_groups(b, x, moments, q.number("eps", 1e-5), operand(1), operand(2)), result)};
  };
  op.samples = [] {
    std::vector<Sample> all;
    for (DType t : kFloats)
      all.push_back({.name = std::string(name_of(t)),
                     .operands = {{.dtype = t, .shape = {2, 6, 3, 3}}, {.dtype = t, .shape = {6}}, {.dtype = t, .shape = {6}}},
                     .attributes = {{"eps", 1e-5}, {"num_groups", Dim(3)}},
                     .tolerance = 4});
    return all;
  };
  return op;
}

}  // namespace

Family normalisation_ops() {
  return {softmax_op("softmax", false), softmax_op("log_softmax", true), layer_norm_op(), rms_norm_op(), batch_norm_op(), group_norm_op()};
}

}  // namespace tenon::ops
