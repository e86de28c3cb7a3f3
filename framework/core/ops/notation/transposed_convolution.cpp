#include "core/ops/notation/transposed_convolution.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/ops/notation/move.h"
#include "core/ops/notation/window.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::Shape;

ir::ValueId backwards(NodeBuilder& b, ir::ValueId weight) {
  std::vector<Dim> spatial;
  for (std::size_t d = 2; d < b.graph().type(weight).rank(); ++d) spatial.emplace_back(static_cast<std::int64_t>(d));
  return b.one("flip", {weight}, {{"dims", spatial}});
}

/// The sum of products of windows that step by one.
ir::ValueId conv_sum(NodeBuilder& b, ir::ValueId x, ir::ValueId weight, const std::vector<std::int64_t>& before, const std::vector<std::int64_t>& after,
                     const std::vector<std::int64_t>& dilation, std::int64_t groups) {
  return b.one("conv_sum", {x, weight}, window_attributes(std::vector<std::int64_t>(dilation.size(), 1), before, after, dilation, groups));
}

/// Elements of x a stride apart, and the kernels backwards: most products are with the zeros in between.
ir::ValueId by_spreading(NodeBuilder& b, ir::ValueId x, ir::ValueId weight, const TransposedWindows& w) {
  const Shape shape = b.graph().type(weight).shape;
  Shape split{Dim(w.groups), floor_div(shape[0], Dim(w.groups))}, joined{shape[1] * Dim(w.groups), split[1]};
  split.insert(split.end(), shape.begin() + 1, shape.end());
  joined.insert(joined.end(), shape.begin() + 2, shape.end());
  std::vector<std::int64_t> order(shape.size() + 1);
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[1], order[2]);
  std::vector<std::int64_t> before, after;
  for (std::size_t d = 0; d < w.stride.size(); ++d) {
    before.push_back(w.dilation[d] * (shape[2 + d].constant() - 1) - w.padding[d]);
    after.push_back(before.back() + w.output_padding[d]);
  }
  if (std::ranges::any_of(w.stride, [](std::int64_t n) { return n != 1; })) x = b.one("spread", {x}, {{"stride", dims_of(w.stride)}});
  const ir::ValueId plain = reshape_to(b, permute_by(b, reshape_to(b, weight, split), order), joined);
  return conv_sum(b, x, backwards(b, plain), before, after, w.dilation, w.groups);
}

/// Results that are a stride apart take the same taps, every stride-th of the kernel: those of each place within a stride are a plain
/// convolution. With o + padding = q * stride + r and t = r + stride * u: y[o] = the sum over u of x[q - u] * weight[r + stride * u].
class ByPhases {
 public:
  ByPhases(NodeBuilder& b, const TransposedWindows& windows) : b_(b), w_(windows), rank_(windows.stride.size()) {}

  ir::ValueId operator()(ir::ValueId x, ir::ValueId weight) {
    const Shape in = b_.graph().type(x).shape, kernel = b_.graph().type(weight).shape;
    std::vector<std::int64_t> before, after;
    for (std::size_t d = 0; d < rank_; ++d) {
      const std::int64_t taps = taps_of(kernel, d), first = w_.padding[d] / w_.stride[d];
      before.push_back(taps - 1 - first);
      after.push_back(floor_div(Dim(kernel[2 + d].constant() - 1 - w_.padding[d] + w_.output_padding[d]), Dim(w_.stride[d])).constant());
    }
    ir::ValueId y = conv_sum(b_, x, phases_of(weight), before, after, std::vector<std::int64_t>(rank_, 1), w_.groups);
    y = interleaved(y, kernel[1]);
    for (std::size_t d = 0; d < rank_; ++d) {
      const Dim start(w_.padding[d] % w_.stride[d]);
      const Dim size = (in[2 + d] - Dim(1)) * Dim(w_.stride[d]) + Dim(kernel[2 + d].constant() + w_.output_padding[d] - 2 * w_.padding[d]);
      if (start == Dim(0) && b_.graph().type(y).shape[2 + d] == size) continue;
      y = b_.one("slice", {y}, {{"dim", Dim(static_cast<std::int64_t>(2 + d))}, {"end", start + size}, {"start", start}, {"step", Dim(1)}});
    }
    return y;
  }

 private:
  std::int64_t taps_of(const Shape& kernel, std::size_t d) const { return (kernel[2 + d].constant() + w_.stride[d] - 1) / w_.stride[d]; }

  /// [C, O/g, k...] as [g * places * O/g, C/g, taps...].
  ir::ValueId phases_of(ir::ValueId weight) {
    const Shape kernel = b_.graph().type(weight).shape;
    std::vector<Dim> none(2 + rank_, Dim(0)), missing = none;
    Shape split{Dim(w_.groups), floor_div(kernel[0], Dim(w_.groups)), kernel[1]}, joined{Dim(w_.groups) * kernel[1], split[1]};
    std::vector<std::int64_t> places{0}, taps{1};
    for (std::size_t d = 0; d < rank_; ++d) {
      const std::int64_t count = taps_of(kernel, d);
      missing[2 + d] = Dim(count * w_.stride[d]) - kernel[2 + d];
      split.insert(split.end(), {Dim(count), Dim(w_.stride[d])});
      joined.emplace_back(count);
      joined[0] = joined[0] * Dim(w_.stride[d]);
      taps.push_back(static_cast<std::int64_t>(3 + 2 * d)), places.push_back(taps.back() + 1);
    }
    if (missing != none) weight = b_.one("pad", {weight}, {{"after", missing}, {"before", none}, {"mode", std::string("constant")}, {"value", 0.0}});
    places.push_back(2);
    places.insert(places.end(), taps.begin(), taps.end());
    return backwards(b_, reshape_to(b_, permute_by(b_, reshape_to(b_, weight, split), places), joined));
  }

  /// [N, g * places * O/g, q...] as [N, O, q * stride...].
  ir::ValueId interleaved(ir::ValueId y, const Dim& channels) {
    const Shape shape = b_.graph().type(y).shape;
    const auto rank = static_cast<std::int64_t>(rank_);
    Shape split{shape[0], Dim(w_.groups)}, joined{shape[0], Dim(w_.groups) * channels};
    std::vector<std::int64_t> order{0, 1, 2 + rank};
    for (std::int64_t d = 0; d < rank; ++d) {
      const Dim stride(w_.stride[static_cast<std::size_t>(d)]), &size = shape[static_cast<std::size_t>(2 + d)];
      split.push_back(stride), joined.push_back(size * stride);
      order.insert(order.end(), {3 + rank + d, 2 + d});
    }
    split.push_back(channels);
    split.insert(split.end(), shape.begin() + 2, shape.end());
    return reshape_to(b_, permute_by(b_, reshape_to(b_, y, split), order), joined);
  }

  NodeBuilder& b_;
  const TransposedWindows& w_;
  std::size_t rank_;
};

/// True when the phases multiply so much less that putting the kernels in order for them, and the results, costs less than that: few
/// pixels do not pay for the kernels. Kernels of 3 x 3 that step by one are transformed (Winograd), which takes 4/9 of the products.
bool worth_phases(const Shape& in, const Shape& kernel, const TransposedWindows& w) {
  constexpr double kTransformed = 4.0 / 9, kLeastGain = 1.5, kFewPixels = 64;
  double pixels = 1, spread = 1, phases = 1;
  bool transformed = w.stride.size() == 2;
  for (std::size_t d = 0; d < w.stride.size(); ++d) {
    const auto size = static_cast<double>(kernel[2 + d].constant()), stride = static_cast<double>(w.stride[d]);
    if (w.dilation[d] != 1) return false;
    pixels *= in[2 + d].is_constant() ? static_cast<double>(in[2 + d].constant()) : kFewPixels;
    spread *= size * stride, phases *= std::ceil(size / stride) * stride;
    transformed = transformed && size == 3;
  }
  return pixels >= kFewPixels && spread * (transformed ? kTransformed : 1) >= kLeastGain * phases;
}

}  // namespace

ir::ValueId transposed_convolution(NodeBuilder& b, ir::ValueId x, ir::ValueId weight, const TransposedWindows& windows) {
  if (!worth_phases(b.graph().type(x).shape, b.graph().type(weight).shape, windows)) return by_spreading(b, x, weight, windows);
  return ByPhases(b, windows)(x, weight);
}

}  // namespace tenon::ops
