// Convolutions over any number of dimensions, plain and transposed. Cross-correlations, as in every framework.
#include <algorithm>

#include "core/ops/gradients/gradients.h"
#include "core/ops/notation/move.h"
#include "core/ops/notation/reduce.h"
#include "core/ops/notation/transposed_convolution.h"
#include "core/ops/notation/window.h"
#include "core/ops/size_questions.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::Shape;

/// The spatial dimensions of a `conv_sum` and its groups.
struct Convolution {
  std::vector<WindowDim> windows;
  std::int64_t groups;

  Convolution(std::vector<WindowDim> windows, std::int64_t groups) : windows(std::move(windows)), groups(groups) {}
  explicit Convolution(const OpQuery& q) : groups(q.constant_integer("groups", 1)) {
    TENON_USER_CHECK(q.type(0).rank() >= 3 && q.type(1).rank() == q.type(0).rank(),
                     "input and weight must have the same number of dimensions, at least 3; given {} and {}", q.type(0).rank(),
                     q.type(1).rank());
    const std::size_t rank = q.type(0).rank() - 2;
    const auto stride = per_dim(q, "stride", rank, 1), dilation = per_dim(q, "dilation", rank, 1);
    const auto before = per_dim(q, "before", rank, 0), after = per_dim(q, "after", rank, 0);
    for (std::size_t d = 0; d < rank; ++d) {
      WindowDim w{q.type(0).shape[2 + d], Dim(0), kernel_size(q.type(1).shape[2 + d]), stride[d], dilation[d], before[d], after[d]};
      TENON_USER_CHECK(w.stride > 0 && w.dilation > 0, "stride and dilation must be positive");
      w.out = window_count(q.graph(), w, false);
      TENON_USER_CHECK(infer::taken_positive_or_0(q.graph(), w.out - Dim(1)),
                       "Calculated padded input size per channel is smaller than the kernel: input {} with padding ({}, {}), kernel {}",
                       infer::text(q.graph(), w.in), w.before, w.after, w.dilation * (w.kernel - 1) + 1);
      windows.push_back(w);
    }
  }

  Shape result(const OpQuery& q) const {
    Shape shape{q.type(0).shape[0], q.type(1).shape[0]};
    for (const WindowDim& w : windows) shape.push_back(w.out);
    return shape;
  }
};

Result<infer::Types> infer_conv_sum(const OpQuery& q) {
  infer::require_operands(q, 2, 2);
  const DType dtype = infer::shared_dtype(q);
  const Convolution c(q);
  TENON_USER_CHECK(c.groups > 0 && mod(q.type(1).shape[0], Dim(c.groups)) == Dim(0), "{} output channels do not split into {} groups",
                   infer::text(q.graph(), q.type(1).shape[0]), c.groups);
  infer::require_equal(q.graph(), q.type(0).shape[1], q.type(1).shape[1] * Dim(c.groups), "the input's channels and the weight's");
  return infer::one(q, dtype, c.result(q));
}

LoopBody conv_sum_loop(const OpQuery& q) {
  const Convolution c(q);
  const DType t = compute_type(q.type(0).dtype);
  const Dim per_group = q.type(1).shape[1];
  LoopBody body{.extents = c.result(q), .reduced = 1 + c.windows.size(), .element = {}};
  const std::size_t outer = body.extents.size();
  body.extents.push_back(per_group);
  Scalars s;
  IndexMath m(s);
  const Scalar o = s.loop_index(1), channel = s.loop_index(outer);
  const Scalar group = m.floor_div(o, floor_div(q.type(1).shape[0], Dim(c.groups)));
  std::vector<Scalar> x{s.loop_index(0), c.groups == 1 ? channel : s.add(channel, m.mul(group, per_group))}, w{o, channel};
  std::optional<Scalar> inside;
  for (std::size_t d = 0; d < c.windows.size(); ++d) {
    body.extents.emplace_back(c.windows[d].kernel);
    w.push_back(s.loop_index(outer + 1 + d));
    const WindowPlace place = window_place(s, c.windows[d], s.loop_index(2 + d), w.back());
    x.push_back(place.index);
    inside = both(s, inside, place.inside);
  }
  const Scalar element = load_or_zero(s, inside, q.type(0).dtype, x);
  s.result(s.mul(element, s.load(1, q.type(1).dtype, w)));
  body.element = s.take();
  body.reducer = simple_reducer(t, 0, Primitive::add);
  return body;
}

/// The sum of products alone: padding may differ before and after, and be negative; there is no bias.
Op conv_sum_op() {
  Op op;
  op.name = "conv_sum";
  op.schema = "(Tensor input, Tensor weight, *, int[] stride, int[] before, int[] after, int[] dilation, int groups=1) -> Tensor";
  op.aliases = names({"tenon._by_torch.conv_sum"}, "(input, weight, stride, before, after, dilation, groups=1)");
  op.infer = infer_conv_sum;
  op.loop = conv_sum_loop;
  op.grad = written(gradients::conv_sum);
  op.samples = [] {
    std::vector<Sample> all;
    const auto add = [&](std::string name, DType t, std::vector<std::int64_t> x, std::vector<std::int64_t> w, ir::Attributes attributes) {
      all.push_back({.name = std::move(name),
                     .operands = {{.dtype = t, .shape = std::move(x), .fill = Fill::unit}, {.dtype = t, .shape = std::move(w), .fill = Fill::unit}},
                     .attributes = std::move(attributes),
                     .tolerance = 8});
    };
    for (DType t : {DType::f32, DType::f64, DType::f16, DType::i64})
      add(std::string(name_of(t)), t, {2, 3, 7, 6}, {4, 3, 3, 3}, window_attributes({1, 1}, {1, 1}, {1, 1}, {1, 1}, 1));
    add("groups", DType::f32, {2, 4, 9}, {6, 2, 3}, window_attributes({2}, {1}, {2}, {1}, 2));
    add("depthwise", DType::f32, {1, 8, 9, 9}, {8, 1, 3, 3}, window_attributes({1, 1}, {1, 1}, {1, 1}, {1, 1}, 8));
    add("dilated", DType::f32, {1, 2, 9, 8}, {3, 2, 2, 3}, window_attributes({1, 2}, {0, 2}, {0, 2}, {3, 2}, 1));
    add("pointwise", DType::f32, {2, 16, 5, 5}, {24, 16, 1, 1}, window_attributes({1, 1}, {0, 0}, {0, 0}, {1, 1}, 1));
    add("volume", DType::f32, {1, 2, 4, 5, 4}, {3, 2, 2, 3, 2}, window_attributes({1, 1, 1}, {0, 1, 0}, {0, 1, 1}, {1, 1, 1}, 1));
    add("cropped", DType::f32, {1, 2, 9}, {3, 2, 3}, window_attributes({1}, {-2}, {-1}, {1}, 1));
    add("wide", DType::f32, {2, 32, 12, 12}, {40, 32, 3, 3}, window_attributes({1, 1}, {1, 1}, {1, 1}, {1, 1}, 1));
    add("no_batch", DType::f32, {0, 2, 9}, {3, 2, 3}, window_attributes({1}, {0}, {0}, {1}, 1));
    return all;
  };
  return op;
}

/// Zeros between the elements of the spatial dimensions: element i stands at i * stride.
Op spread_op() {
  Op op;
  op.name = "spread";
  op.schema = "(Tensor self, *, int[] stride) -> Tensor";
  const auto shape_of = [](const OpQuery& q) {
    Shape shape = q.type(0).shape;
    const auto stride = q.integers("stride");
    TENON_USER_CHECK(stride.size() <= shape.size(), "{} strides for {} dimensions", stride.size(), shape.size());
    for (std::size_t d = 0; d < stride.size(); ++d) {
      TENON_USER_CHECK(infer::taken_positive_or_0(q.graph(), stride[d] - Dim(1)), "a stride is at least 1, not {}", infer::text(q.graph(), stride[d]));
      Dim& n = shape[shape.size() - stride.size() + d];
      n = infer::at_least(q.graph(), (n - Dim(1)) * stride[d] + Dim(1), Dim(0));
    }
    return shape;
  };
  op.infer = [shape_of](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 1, 1);
    return infer::one(q, q.type(0).dtype, shape_of(q));
  };
  op.loop = [shape_of](const OpQuery& q) {
    return elementwise(shape_of(q), [&](Scalars& s) {
      IndexMath m(s);
      auto at = m.loops(q.type(0).rank());
      const auto stride = q.integers("stride");
      std::optional<Scalar> there;
      for (std::size_t d = 0; d < stride.size(); ++d) {
        Scalar& i = at[at.size() - stride.size() + d];
        if (stride[d] == Dim(1)) continue;
        there = both(s, there, s.eq(m.mod(i, stride[d]), m.of(0)));
        i = m.floor_div(i, stride[d]);
      }
      const DType t = q.type(0).dtype;
      return there ? s.load_if(*there, 0, t, at, s.constant(compute_type(t), std::int64_t{0})) : s.load(0, t, at);
    });
  };
  op.samples = [] {
    return std::vector<Sample>{{.name = "plane", .operands = {{.shape = {2, 3, 4}}}, .attributes = {{"stride", std::vector<Dim>{2, 3}}}},
                               {.name = "half", .operands = {{.dtype = DType::f16, .shape = {5}}}, .attributes = {{"stride", std::vector<Dim>{2}}}}};
  };
  return op;
}

// ---- the gradient of a weight

/// Of the result of a `conv_sum` over an input: which windows met it. The padding after the input follows from the sizes.
Convolution windows_of_weight(const OpQuery& q) {
  const std::size_t rank = q.type(0).rank() - 2;
  const auto kernel = per_dim(q, "kernel", rank, 1), stride = per_dim(q, "stride", rank, 1), dilation = per_dim(q, "dilation", rank, 1), before = per_dim(q, "before", rank, 0);
  Convolution c{{}, q.constant_integer("groups", 1)};
  for (std::size_t d = 0; d < rank; ++d) {
    TENON_USER_CHECK(stride[d] > 0 && dilation[d] > 0 && kernel[d] >= 0, "stride and dilation must be positive, and sizes of kernels at least 0");
    const Dim &in = q.type(0).shape[2 + d], &out = q.type(1).shape[2 + d];
    const Dim after = padding_after(in, out, Dim(kernel[d]), Dim(stride[d]), Dim(dilation[d]), Dim(before[d]));
    const bool within = after == Dim(0) || (in.is_constant() && after.is_constant() && after.constant() < 0);
    c.windows.push_back({in, out, kernel[d], stride[d], dilation[d], before[d], within ? 0 : 1});
  }
  return c;
}

Result<infer::Types> infer_conv_weight_sum(const OpQuery& q) {
  infer::require_operands(q, 2, 2);
  const DType dtype = infer::shared_dtype(q);
  const Shape &x = q.type(0).shape, &g = q.type(1).shape;
  TENON_USER_CHECK(x.size() >= 3 && g.size() == x.size(), "input and gradient must have the same number of dimensions, at least 3; given {} and {}", x.size(), g.size());
  const Convolution c = windows_of_weight(q);
  infer::require_equal(q.graph(), x[0], g[0], "the samples of the input and of the gradient");
  TENON_USER_CHECK(c.groups > 0 && mod(x[1], Dim(c.groups)) == Dim(0) && mod(g[1], Dim(c.groups)) == Dim(0), "{} and {} channels do not split into {} groups",
                   infer::text(q.graph(), x[1]), infer::text(q.graph(), g[1]), c.groups);
  Shape shape{g[1], floor_div(x[1], Dim(c.groups))};
  for (const WindowDim& w : c.windows) shape.emplace_back(w.kernel);
  return infer::one(q, dtype, std::move(shape));
}

LoopBody conv_weight_sum_loop(const OpQuery& q) {
  const Convolution c = windows_of_weight(q);
  const DType t = compute_type(q.type(0).dtype);
  const Shape &x = q.type(0).shape, &g = q.type(1).shape;
  const Dim per_group = floor_div(x[1], Dim(c.groups));
  const std::size_t rank = c.windows.size();
  LoopBody body{.extents = {g[1], per_group}, .reduced = 1 + rank, .element = {}};
  for (const WindowDim& w : c.windows) body.extents.emplace_back(w.kernel);
  body.extents.push_back(x[0]);
  for (const WindowDim& w : c.windows) body.extents.push_back(w.out);
  Scalars s;
  IndexMath m(s);
  const Scalar o = s.loop_index(0), channel = s.loop_index(1), sample = s.loop_index(2 + rank);
  const Scalar group = m.floor_div(o, floor_div(g[1], Dim(c.groups)));
  std::vector<Scalar> from{sample, c.groups == 1 ? channel : s.add(channel, m.mul(group, per_group))}, at{sample, o};
  std::optional<Scalar> inside;
  for (std::size_t d = 0; d < rank; ++d) {
    at.push_back(s.loop_index(3 + rank + d));
    const WindowPlace place = window_place(s, c.windows[d], at.back(), s.loop_index(2 + d));
    from.push_back(place.index);
    inside = both(s, inside, place.inside);
  }
  const Scalar element = load_or_zero(s, inside, q.type(0).dtype, from);
  s.result(s.mul(s.load(1, q.type(1).dtype, at), element));
  body.element = s.take();
  body.reducer = simple_reducer(t, 0, Primitive::add);
  return body;
}

using Numbers = std::vector<std::int64_t>;
/// What each weight of a `conv_sum` was multiplied by, times a gradient of what it gave.
Op conv_weight_sum_op() {
  Op op;
  op.name = "conv_weight_sum";
  op.schema = "(Tensor input, Tensor gradient, *, int[] kernel, int[] stride, int[] before, int[] dilation, int groups=1) -> Tensor";
  op.aliases = names({"tenon._by_torch.conv_weight_sum"}, "(input, gradient, kernel, stride, before, dilation, groups=1)");
  op.infer = infer_conv_weight_sum;
  op.loop = conv_weight_sum_loop;
  op.grad = written(gradients::conv_weight_sum);
  op.samples = [] {
    std::vector<Sample> all;
    const auto add = [&](std::string name, DType t, Numbers x, Numbers g, const Numbers& kernel, const Numbers& stride, const Numbers& before, const Numbers& dilation, std::int64_t groups) {
      all.push_back({.name = std::move(name),
                     .operands = {{.dtype = t, .shape = std::move(x), .fill = Fill::unit}, {.dtype = t, .shape = std::move(g), .fill = Fill::unit}},
                     .attributes = {{"before", dims_of(before)}, {"dilation", dims_of(dilation)}, {"groups", Dim(groups)}, {"kernel", dims_of(kernel)}, {"stride", dims_of(stride)}},
                     .tolerance = 8});
    };
    for (DType t : {DType::f32, DType::f64, DType::f16}) add(std::string(name_of(t)), t, {2, 3, 7, 6}, {2, 4, 7, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1);
    add("groups", DType::f32, {2, 4, 9}, {2, 6, 5}, {3}, {2}, {1}, {1}, 2);
    add("depthwise", DType::f32, {2, 8, 6, 6}, {2, 8, 6, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 8);
    add("dilated", DType::f32, {1, 2, 9, 8}, {1, 3, 6, 3}, {2, 3}, {1, 2}, {0, 2}, {3, 2}, 1);
    add("volume", DType::f32, {1, 2, 4, 5, 4}, {1, 3, 3, 5, 4}, {2, 3, 2}, {1, 1, 1}, {0, 1, 0}, {1, 1, 1}, 1);
    add("wide", DType::f32, {2, 32, 6, 6}, {2, 40, 6, 6}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 1);
    add("strided", DType::f32, {2, 24, 9, 8}, {2, 16, 5, 4}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 1);
    add("no_batch", DType::f32, {0, 2, 9}, {0, 3, 7}, {3}, {1}, {0}, {1}, 1);
    return all;
  };
  return op;
}

/// What each element of a `conv_sum`'s input was multiplied by, times a gradient of what it gave. For devices on which it may be one call of a library.
Op conv_input_sum_op() {
  Op op;
  op.name = "conv_input_sum";
  op.schema = "(Tensor weight, Tensor gradient, *, int[] sizes, int[] stride, int[] before, int[] dilation, int groups=1) -> Tensor";
  op.aliases = names({"tenon._by_torch.conv_input_sum"}, "(weight, gradient, sizes, stride, before, dilation, groups=1)");
  op.infer = gradients::types_of_conv_input_sum;
  op.traits.is_inferred_whole = true;
  op.decompose = gradients::conv_input_sum;
  op.samples = [] {
    std::vector<Sample> all;
    const auto add = [&](std::string name, DType t, Numbers w, Numbers g, const Numbers& sizes, const Numbers& stride, const Numbers& before, const Numbers& dilation, std::int64_t groups) {
      all.push_back({.name = std::move(name), .operands = {{.dtype = t, .shape = std::move(w), .fill = Fill::unit}, {.dtype = t, .shape = std::move(g), .fill = Fill::unit}}, .tolerance = 8});
      all.back().attributes = {{"before", dims_of(before)}, {"dilation", dims_of(dilation)}, {"groups", Dim(groups)}, {"sizes", dims_of(sizes)}, {"stride", dims_of(stride)}};
    };
    for (DType t : {DType::f32, DType::f64, DType::f16}) add(std::string(name_of(t)), t, {4, 3, 3, 3}, {2, 4, 7, 6}, {7, 6}, {1, 1}, {1, 1}, {1, 1}, 1);
    add("groups", DType::f32, {6, 2, 3}, {2, 6, 5}, {9}, {2}, {1}, {1}, 2);
    add("dilated", DType::f32, {3, 2, 2, 3}, {1, 3, 6, 3}, {9, 8}, {1, 2}, {0, 2}, {3, 2}, 1);
    add("strided", DType::f32, {16, 24, 3, 3}, {2, 16, 5, 4}, {9, 8}, {2, 2}, {1, 1}, {1, 1}, 1);
    add("left_over", DType::f32, {3, 2, 3}, {1, 3, 3}, {11}, {3}, {0}, {1}, 1);
    add("no_batch", DType::f32, {3, 2, 3}, {0, 3, 7}, {9}, {1}, {0}, {1}, 1);
    return all;
  };
  return op;
}

// ---- convolution

struct Attributes {
  std::vector<std::int64_t> stride, padding, dilation, output_padding;
  std::int64_t groups;
  bool transposed;

  explicit Attributes(const OpQuery& q) : groups(q.constant_integer("groups", 1)), transposed(q.flag("transposed")) {
    TENON_USER_CHECK(q.type(0).rank() >= 3, "takes an input of at least 3 dimensions, not {}", q.type(0).rank());
    const std::size_t rank = q.type(0).rank() - 2;
    stride = per_dim(q, "stride", rank, 1);
    padding = per_dim(q, "padding", rank, 0);
    dilation = per_dim(q, "dilation", rank, 1);
    output_padding = per_dim(q, "output_padding", rank, 0);
    for (std::size_t d = 0; d < rank; ++d) {
      TENON_USER_CHECK(stride[d] > 0, "non-positive stride is not supported");
      TENON_USER_CHECK(dilation[d] > 0, "dilation should be greater than zero");
      TENON_USER_CHECK(padding[d] >= 0 && output_padding[d] >= 0, "negative padding is not supported");
      TENON_USER_CHECK(!transposed || output_padding[d] < std::max(stride[d], dilation[d]), "output padding must be smaller than either stride or dilation");
    }
  }
};

ir::ValueId convolve(NodeBuilder& b, ir::ValueId x, ir::ValueId weight, const Attributes& a) {
  if (a.transposed) return transposed_convolution(b, x, weight, {a.stride, a.padding, a.dilation, a.output_padding, a.groups});
  return b.one("conv_sum", {x, weight}, window_attributes(a.stride, a.padding, a.padding, a.dilation, a.groups));
}

Values decompose_convolution(NodeBuilder& b, const OpQuery& q) {
  const DType result = q.type(0).dtype, t = compute_type(result);
  const Attributes attributes(q);
  const Values operands(q.operands().begin(), q.operands().end());
  ir::ValueId y = convolve(b, b.cast(operands[0], t), b.cast(operands[1], t), attributes);
  if (operands.size() == 3) {
    Shape channels(attributes.stride.size() + 1, Dim(1));
    channels[0] = b.graph().type(y).shape[1];
    y = b.one("add", {y, reshape_to(b, b.cast(operands[2], t), channels)});
  }
  return {b.cast(y, result)};
}

Result<infer::Types> infer_convolution(const OpQuery& q) {
  infer::require_operands(q, 2, 3);
  const DType dtype = infer::shared_dtype(q);
  const Attributes a(q);
  const Shape &x = q.type(0).shape, &w = q.type(1).shape;
  TENON_USER_CHECK(w.size() == x.size(), "expected {}-dimensional weight for {}-dimensional input, but got {} dimensions", x.size(), x.size(), w.size());
  TENON_USER_CHECK(a.groups > 0, "groups must be positive");
  TENON_USER_CHECK(std::ranges::find(w, Dim(0)) == w.end() || w[1] == Dim(0), "expected a weight with elements");
  TENON_USER_CHECK(mod(w[0], Dim(a.groups)) == Dim(0), "{} channels of the weight do not split into {} groups", infer::text(q.graph(), w[0]), a.groups);
  infer::require_equal(q.graph(), x[1], a.transposed ? w[0] : w[1] * Dim(a.groups), "the input's channels and the weight's");
  TENON_USER_CHECK(std::ranges::find(x.begin() + 2, x.end(), Dim(0)) == x.end(), "Only zero batch or zero channel inputs are supported");
  Shape shape{x[0], a.transposed ? w[1] * Dim(a.groups) : w[0]};
  for (std::size_t d = 0; d < a.stride.size(); ++d) {
    const std::int64_t kernel = kernel_size(w[2 + d]), reach = a.dilation[d] * (kernel - 1);
    if (a.transposed)
      shape.push_back((x[2 + d] - Dim(1)) * Dim(a.stride[d]) + Dim(reach + 1 + a.output_padding[d] - 2 * a.padding[d]));
    else
      shape.push_back(window_count(q.graph(), {x[2 + d], Dim(0), kernel, a.stride[d], a.dilation[d], a.padding[d], a.padding[d]}, false));
    TENON_USER_CHECK(infer::taken_positive_or_0(q.graph(), shape.back() - Dim(1)), "the output of dimension {} would have no elements", d);
  }
  if (q.operand_count() == 3) {
    TENON_USER_CHECK(q.type(2).rank() == 1, "the bias must have one dimension, not {}", q.type(2).rank());
    infer::require_equal(q.graph(), q.type(2).shape[0], shape[1], "the bias's size and the output's channels");
  }
  return infer::one(q, dtype, std::move(shape));
}

// ---- foreign calls

/// padding='same': as much on both sides, the odd element after.
ir::ValueId pad_to_same(ForeignArguments& a, ir::ValueId x, const Shape& weight, const std::vector<Dim>& dilation, std::vector<Dim>& padding) {
  const std::size_t rank = dilation.size();
  std::vector<Dim> none(rank + 2, Dim(0)), after = none;
  bool uneven = false;
  for (std::size_t d = 0; d < rank; ++d) {
    const std::int64_t total = dilation[d].constant() * (weight[2 + d].constant() - 1);
    padding[d] = Dim(total / 2);
    after[2 + d] = Dim(total % 2);
    uneven |= total % 2 != 0;
  }
  return uneven ? a.one("pad", {x}, {{"after", after}, {"before", none}, {"mode", std::string("constant")}, {"value", 0.0}}) : x;
}

/// torch.conv1d and so on: `rank` spatial dimensions; 0 takes what the input has.
Adapt convolution_adapt(std::size_t rank, std::optional<bool> transposed) {
  return [=](ForeignArguments& a) -> Values {
    ir::ValueId x = a.value("input");
    const ir::ValueId weight = a.value("weight");
    const std::size_t n = rank ? rank : a.type(x).rank() - 2;
    TENON_USER_CHECK(a.type(x).rank() == n + 2 || (rank && a.type(x).rank() == n + 1), "Expected {}D (unbatched) or {}D (batched) input, but got a {}-D tensor", n + 1, n + 2, a.type(x).rank());
    TENON_USER_CHECK(a.type(weight).rank() == n + 2, "expected a weight of {} dimensions, not {}", n + 2, a.type(weight).rank());
    const Batched batched = with_batch(a, x, n + 1);
    x = batched.value;
    if (a.type(x).shape[1] == Dim(0)) throw Exception(Code::unsupported, "a convolution of no channels, of which torch gives another shape");
    const auto stride = per_dim(a, "stride", n, {Dim(1)}), dilation = per_dim(a, "dilation", n, {Dim(1)});
    const std::string* word = a["padding"].as<std::string>();
    std::vector<Dim> padding = word ? std::vector<Dim>(n, Dim(0)) : per_dim(a, "padding", n, {Dim(0)});
    TENON_USER_CHECK(!word || *word == "same" || *word == "valid", "Invalid padding string: '{}'", word ? *word : "");
    const auto is_one = [](const Dim& s) { return s == Dim(1); };
    TENON_USER_CHECK(!word || *word == "valid" || std::ranges::all_of(stride, is_one), "padding='same' is not supported for strided convolutions");
    if (word && *word == "same") x = pad_to_same(a, x, Shape(a.type(weight).shape), dilation, padding);
    Values operands{x, weight};
    if (a.given("bias")) operands.push_back(a.value("bias"));
    const ir::ValueId y = a.one("convolution", operands,
                                {{"dilation", dilation},
                                 {"groups", a.integer("groups", Dim(1))},
                                 {"output_padding", per_dim(a, "output_padding", n, {Dim(0)})},
                                 {"padding", padding},
                                 {"stride", stride},
                                 {"transposed", transposed ? *transposed : a.flag("transposed")}});
    return {without_batch(a, y, batched.added)};
  };
}

std::vector<Alias> convolution_names() {
  std::vector<Alias> all;
  for (std::size_t n : {1u, 2u, 3u}) {
    all = all + names({fmt::format("torch.conv{}d", n)}, "(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1)", convolution_adapt(n, false)) +
          names({fmt::format("torch.conv_transpose{}d", n)},
                "(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1)", convolution_adapt(n, true));
  }
  const std::string general = "(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups";
  return all + names({"torch.convolution"}, general + ")", convolution_adapt(0, {})) +
         names({"torch._convolution"}, general + ", benchmark=False, deterministic=False, cudnn_enabled=True, allow_tf32=True)", convolution_adapt(0, {}));
}

std::vector<Sample> convolution_samples() {
  std::vector<Sample> all;
  const auto add = [&](std::string name, DType t, std::vector<std::vector<std::int64_t>> shapes, ir::Attributes attributes) {
    Sample sample{.name = std::move(name), .attributes = std::move(attributes), .tolerance = 8};
    for (auto& shape : shapes) sample.operands.push_back({.dtype = t, .shape = shape, .fill = Fill::unit});
    all.push_back(std::move(sample));
  };
  const auto dims = [](std::int64_t a, std::int64_t b) { return std::vector<Dim>{Dim(a), Dim(b)}; };
  for (DType t : {DType::f32, DType::f64, DType::f16, DType::bf16})
    add(std::string(name_of(t)), t, {{2, 3, 6, 5}, {4, 3, 3, 3}, {4}}, {{"padding", dims(1, 1)}, {"stride", dims(2, 1)}});
  add("no_bias", DType::f32, {{1, 4, 5, 5}, {6, 2, 3, 3}}, {{"dilation", dims(1, 2)}, {"groups", Dim(2)}, {"padding", dims(0, 2)}});
  add("transposed", DType::f32, {{2, 4, 3, 4}, {4, 2, 3, 2}, {4}},
      {{"groups", Dim(2)}, {"output_padding", dims(1, 0)}, {"padding", dims(1, 0)}, {"stride", dims(2, 3)}, {"transposed", true}});
  add("transposed_phases", DType::f32, {{2, 4, 8, 9}, {4, 3, 4, 4}, {3}}, {{"padding", dims(1, 1)}, {"stride", dims(2, 2)}, {"transposed", true}});
  add("transposed_groups", DType::f32, {{1, 6, 10, 8}, {6, 2, 5, 2}},
      {{"groups", Dim(3)}, {"output_padding", dims(2, 0)}, {"padding", dims(1, 0)}, {"stride", dims(3, 1)}, {"transposed", true}});
  add("transposed_dilated", DType::f32, {{1, 2, 8, 4}, {2, 3, 3, 3}}, {{"dilation", dims(2, 1)}, {"padding", dims(5, 0)}, {"transposed", true}});
  return all;
}

Op convolution_op() {
  Op op;
  op.name = "convolution";
  op.traits.layout = ResultLayout::memory_format;
  op.schema =
      "(Tensor input, Tensor weight, Tensor? bias=None, *, int[] stride=1, int[] padding=0, int[] dilation=1, bool transposed=False, int[] output_padding=0, int "
      "groups=1) -> Tensor";
  op.aliases = convolution_names();
  op.infer = infer_convolution;
  op.traits.is_inferred_whole = true;
  op.decompose = decompose_convolution;
  op.samples = convolution_samples;
  return op;
}

}  // namespace

Family convolution_ops() { return {conv_sum_op(), conv_weight_sum_op(), conv_input_sum_op(), spread_op(), convolution_op()}; }

}  // namespace tenon::ops
