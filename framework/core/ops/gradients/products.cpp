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

/// The attributes of a `conv_sum`, and the sizes along its spatial dimensions.
struct Windows {
  std::vector<std::int64_t> stride, before, after, dilation, in, out, kernel;
  std::int64_t groups;

  explicit Windows(GradBuilder& g) : groups(g.query().constant_integer("groups", 1)) {
    const OpQuery& q = g.query();
    const std::size_t rank = q.type(0).rank() - 2;
    stride = per_dim(q, "stride", rank, 1), dilation = per_dim(q, "dilation", rank, 1);
    before = per_dim(q, "before", rank, 0), after = per_dim(q, "after", rank, 0);
    const Shape result = g.type(g.result()).shape;
    for (std::size_t d = 0; d < rank; ++d) {
      if (!q.type(0).shape[2 + d].is_constant()) throw Exception(Code::unsupported, "the gradient of a convolution over dimensions of unknown size");
      in.push_back(q.type(0).shape[2 + d].constant());
      out.push_back(result[2 + d].constant());
      kernel.push_back(q.type(1).shape[2 + d].constant());
    }
  }
};

ValueId convolved(GradBuilder& g, ValueId x, ValueId weight, const std::vector<std::int64_t>& stride, const std::vector<std::int64_t>& before,
                  const std::vector<std::int64_t>& after, const std::vector<std::int64_t>& dilation, std::int64_t groups) {
  return g.one("conv_sum", {x, weight}, window_attributes(stride, before, after, dilation, groups));
}

/// Every element of the result hands its weights back to its window: a convolution of the spread gradient with the kernel backwards.
ValueId gradient_of_input(GradBuilder& g, const Windows& w) {
  std::vector<std::int64_t> before, after;
  std::vector<Dim> spatial;
  for (std::size_t d = 0; d < w.in.size(); ++d) {
    const std::int64_t reach = w.dilation[d] * (w.kernel[d] - 1);
    before.push_back(reach - w.before[d]);
    after.push_back(w.in[d] + reach - before.back() - ((w.out[d] - 1) * w.stride[d] + 1));
    spatial.emplace_back(static_cast<std::int64_t>(2 + d));
  }
  const ValueId grouped = reordered(g, split(g, g.operand(1), 0, w.groups), {0, 2, 1});  // [G, C/G, O/G, k...]
  const Shape shape = g.type(grouped).shape, kernels = g.type(g.operand(1)).shape;
  const ValueId weight = g.one("flip", {g.reshape(grouped, joined({shape[0] * shape[1], shape[2]}, kernels))}, {{"dims", spatial}});
  const ValueId spread = g.one("spread", {g.gradient()}, {{"stride", dims_of(w.stride)}});
  return convolved(g, spread, weight, std::vector<std::int64_t>(w.in.size(), 1), before, after, w.dilation, w.groups);
}

/// A weight meets the elements of its input that lie a stride apart: a convolution with the gradient as kernel, samples as channels.
ValueId gradient_of_weight(GradBuilder& g, const Windows& w) {
  std::vector<std::int64_t> after;
  for (std::size_t d = 0; d < w.in.size(); ++d)
    after.push_back(w.dilation[d] * (w.kernel[d] - 1) + w.stride[d] * (w.out[d] - 1) + 1 - w.in[d] - w.before[d]);
  const ValueId inputs = reordered(g, split(g, g.operand(0), 1, w.groups), {2, 1, 0});   // [C/G, G, N, in...]
  const ValueId outputs = reordered(g, split(g, g.gradient(), 1, w.groups), {1, 2, 0});  // [G, O/G, N, out...]
  const Shape in = g.type(inputs).shape, out = g.type(outputs).shape;
  const ValueId x = g.reshape(inputs, joined({in[0], in[1] * in[2]}, g.type(g.operand(0)).shape));
  const ValueId kernel = g.reshape(outputs, joined({out[0] * out[1], out[2]}, g.type(g.gradient()).shape));
  const ValueId sums = convolved(g, x, kernel, w.dilation, w.before, after, w.stride, w.groups);  // [C/G, O, k...]
  std::vector<std::int64_t> order(g.type(sums).rank());
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[0], order[1]);
  return permute_by(g.nodes(), sums, order);
}

}  // namespace

GradBuilder::Values matrix_product(GradBuilder& g) {
  const std::string op = g.type(g.operand()).rank() == 2 ? "mm" : "bmm";
  return {g.one(op, {g.gradient(), transposed(g, g.operand(1))}), g.one(op, {transposed(g, g.operand(0)), g.gradient()})};
}

GradBuilder::Values conv_sum(GradBuilder& g) {
  const Windows w(g);
  return {gradient_of_input(g, w), gradient_of_weight(g, w)};
}

}  // namespace tenon::ops::gradients
