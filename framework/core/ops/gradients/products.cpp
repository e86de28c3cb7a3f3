#include <numeric>

#include "core/ops/gradients/gradients.h"
#include "core/ops/notation/move.h"
#include "core/ops/notation/window.h"

namespace tenon::ops::gradients {
namespace {

using ir::Dim;
using ir::Shape;
using ir::ValueId;

ValueId transposed(GradBuilder& g, ValueId v) {
  std::vector<std::int64_t> order(g.type(v).rank());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return permute_by(g.nodes(), v, order);
}

/// The shape with its spatial part (from dimension 2 on) that of another.
Shape joined(Shape front, const Shape& spatial) {
  front.insert(front.end(), spatial.begin() + 2, spatial.end());
  return front;
}

/// Splits one dimension into `groups` and the rest.
ValueId split(GradBuilder& g, ValueId v, std::size_t dim, std::int64_t groups) {
  Shape shape = g.type(v).shape;
  shape[dim] = floor_div(shape[dim], Dim(groups));
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(dim), Dim(groups));
  return g.reshape(v, shape);
}

/// The first three dimensions in another order.
ValueId reordered(GradBuilder& g, ValueId v, std::array<std::int64_t, 3> first) {
  std::vector<std::int64_t> order(g.type(v).rank());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::copy(first, order.begin());
  return permute_by(g.nodes(), v, order);
}

/// The windows of a `conv_sum`, by spatial dimension: of its input, of what it gives, and of its weight.
struct Windows {
  std::vector<std::int64_t> stride, before, dilation, in, out, kernel;
  std::int64_t groups;

  Windows(const OpQuery& q, const Shape& input, const Shape& result, const Shape& weight) : groups(q.constant_integer("groups", 1)) {
    const std::size_t rank = input.size() - 2;
    stride = per_dim(q, "stride", rank, 1), dilation = per_dim(q, "dilation", rank, 1), before = per_dim(q, "before", rank, 0);
    for (std::size_t d = 0; d < rank; ++d) {
      if (!input[2 + d].is_constant()) throw Exception(Code::unsupported, "the gradient of a convolution over dimensions of unknown size");
      in.push_back(input[2 + d].constant());
      out.push_back(result[2 + d].constant());
      kernel.push_back(weight[2 + d].constant());
    }
  }

  /// Padding after the input that the last window reaches into; negative where it ends before.
  std::vector<std::int64_t> after() const {
    std::vector<std::int64_t> all;
    for (std::size_t d = 0; d < in.size(); ++d) all.push_back((out[d] - 1) * stride[d] + dilation[d] * (kernel[d] - 1) + 1 - in[d] - before[d]);
    return all;
  }
};

/// Every element of the result hands its weights back to its window: a convolution of the spread gradient with the kernel backwards.
ValueId gradient_of_input(GradBuilder& g, const Windows& w, ValueId gradient, ValueId weight) {
  std::vector<std::int64_t> before, after;
  std::vector<Dim> spatial;
  for (std::size_t d = 0; d < w.in.size(); ++d) {
    const std::int64_t reach = w.dilation[d] * (w.kernel[d] - 1);
    before.push_back(reach - w.before[d]);
    after.push_back(w.in[d] + reach - before.back() - ((w.out[d] - 1) * w.stride[d] + 1));
    spatial.emplace_back(static_cast<std::int64_t>(2 + d));
  }
  const ValueId grouped = reordered(g, split(g, weight, 0, w.groups), {0, 2, 1});  // [G, C/G, O/G, k...]
  const Shape shape = g.type(grouped).shape, kernels = g.type(weight).shape;
  const ValueId backwards = g.one("flip", {g.reshape(grouped, joined({shape[0] * shape[1], shape[2]}, kernels))}, {{"dims", spatial}});
  const ValueId spread = g.one("spread", {gradient}, {{"stride", dims_of(w.stride)}});
  return g.one("conv_sum", {spread, backwards}, window_attributes(std::vector<std::int64_t>(w.in.size(), 1), before, after, w.dilation, w.groups));
}

}  // namespace

GradBuilder::Values matrix_product(GradBuilder& g) {
  const std::string op = g.type(g.operand()).rank() == 2 ? "mm" : "bmm";
  return {g.one(op, {g.gradient(), transposed(g, g.operand(1))}), g.one(op, {transposed(g, g.operand(0)), g.gradient()})};
}

GradBuilder::Values conv_sum(GradBuilder& g) {
  const ValueId x = g.operand(0), weight = g.operand(1);
  const Windows w(g.query(), g.shape(x), g.shape(g.result()), g.shape(weight));
  const ValueId of_weight = g.one("conv_weight_sum", {x, g.gradient()},
                                  {{"before", dims_of(w.before)}, {"dilation", dims_of(w.dilation)}, {"groups", Dim(w.groups)}, {"kernel", dims_of(w.kernel)}, {"stride", dims_of(w.stride)}});
  return {gradient_of_input(g, w, g.gradient(), weight), of_weight};
}

/// Of the result the gradient is a weight: it stands where that of the convolution did.
GradBuilder::Values conv_weight_sum(GradBuilder& g) {
  const ValueId x = g.operand(0), of_result = g.operand(1), weight = g.gradient();
  const Windows w(g.query(), g.shape(x), g.shape(of_result), g.shape(weight));
  return {gradient_of_input(g, w, of_result, weight), g.one("conv_sum", {x, weight}, window_attributes(w.stride, w.before, w.after(), w.dilation, w.groups))};
}

}  // namespace tenon::ops::gradients
