#include <algorithm>
#include <numeric>

#include "core/ops/gradients/gradients.h"
#include "core/ops/infer.h"
#include "core/ops/notation/move.h"
#include "core/ops/notation/window.h"

namespace tenon::ops::gradients {
namespace {

using ir::Dim;
using ir::Shape;
using ir::ValueId;

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

constexpr const char* kUnknownSize = "the gradient of a convolution over dimensions of unknown size";

/// A number that follows from sizes, but not from unknown ones.
std::int64_t known(const Dim& d) {
  if (!d.is_constant()) throw Exception(Code::unsupported, kUnknownSize);
  return d.constant();
}

/// The windows of a `conv_sum`, by spatial dimension: of its input, of what it gives, and of its weight.
struct Windows {
  std::vector<std::int64_t> stride, before, dilation, kernel;
  std::vector<Dim> in, out, after;  // `after`: padding, where it is said; else as much as the last window reaches into, negative where it ends before the input does
  std::int64_t groups;

  Windows(const OpQuery& q, const Shape& input, const Shape& result, const Shape& weight) : groups(q.constant_integer("groups", 1)) {
    const std::size_t rank = input.size() - 2;
    stride = per_dim(q, "stride", rank, 1), dilation = per_dim(q, "dilation", rank, 1), before = per_dim(q, "before", rank, 0);
    if (q.find("after")) after = dims_of(per_dim(q, "after", rank, 0));
    for (std::size_t d = 0; d < rank; ++d) {
      in.push_back(input[2 + d]);
      out.push_back(result[2 + d]);
      kernel.push_back(weight[2 + d].constant());
      if (after.size() == d) after.push_back(padding_after(in[d], out[d], Dim(kernel[d]), Dim(stride[d]), Dim(dilation[d]), Dim(before[d])));
    }
  }

  /// How far a window reaches beyond its first element.
  std::int64_t reach(std::size_t d) const { return dilation[d] * (kernel[d] - 1); }
};

/// Elements of the input that lie a stride apart meet the same weights: those of each place within a stride are a convolution of the gradient with
/// every so manieth weight, backwards. With o + before = stride * q + place, and t * dilation = place + stride * (first + u * dilation'):
/// the input's o gets the sum over u of gradient[q - first - u * dilation'] * weight[t]. `more`: how many more q there are than results.
struct Phase {
  std::int64_t weight = 0, step = 1, count = 0;  // the first weight, how far the next one is, and how many there are
  std::int64_t before = 0, after = 0, dilation = 1;  // of that convolution

  Phase(const Windows& w, std::size_t d, std::int64_t place, std::int64_t more) {
    const std::int64_t stride = w.stride[d], shared = std::gcd(w.dilation[d], stride);
    step = stride / shared, dilation = w.dilation[d] / shared;
    while (weight < std::min(step, w.kernel[d]) && weight * w.dilation[d] % stride != place) ++weight;
    if (weight == step || weight >= w.kernel[d]) return;
    count = (w.kernel[d] - weight + step - 1) / step;
    const std::int64_t first = (weight * w.dilation[d] - place) / stride, reach = dilation * (count - 1);
    before = first + reach - floor_div(Dim(w.before[d]), Dim(stride)).constant();
    after = more - before + reach;
  }
};

class GradientOfInput {
 public:
  GradientOfInput(GradBuilder& g, const Windows& w, ValueId gradient, ValueId weight) : g_(g), w_(w), gradient_(gradient), weight_(weight), rank_(w.in.size()) {
    for (std::size_t d = 0; d < rank_; ++d) {
      first_.push_back(floor_div(Dim(w.before[d]), Dim(w.stride[d])).constant());
      more_.push_back(more_than_results(d) - first_.back());
      places_ *= w.stride[d];
    }
  }

  ValueId operator()() {
    constexpr std::int64_t kMostPlaces = 64;
    const auto is_empty = [](const Dim& n) { return n.is_constant() && n.constant() <= 0; };
    const bool empty = std::ranges::any_of(w_.in, is_empty) || std::ranges::any_of(w_.out, is_empty);
    return places_ == 1 || places_ > kMostPlaces || empty ? by_spreading() : by_phases();
  }

 private:
  using Numbers = std::vector<std::int64_t>;

  /// How many more strides there are up to the end of the input, with the padding before it, than results. Of unknown sizes, how many more there may be: what
  /// lies beyond the input is left out in the end.
  std::int64_t more_than_results(std::size_t d) const {
    const Dim stride(w_.stride[d]), strides = floor_div(w_.in[d] + Dim(w_.before[d] - 1), stride) + Dim(1);
    if (const Dim more = strides - w_.out[d]; more.is_constant()) return more.constant();
    return -floor_div(Dim(known(w_.after[d]) - w_.reach(d)), stride).constant();
  }

  /// How many q there are.
  Dim strides(std::size_t d) const { return w_.out[d] + Dim(more_[d]); }

  /// A convolution of the spread gradient with the kernel backwards.
  ValueId by_spreading() {
    Numbers before, after;
    for (std::size_t d = 0; d < rank_; ++d) {
      before.push_back(w_.reach(d) - w_.before[d]);
      after.push_back(known(w_.in[d] + Dim(w_.before[d] - 1) - (w_.out[d] - Dim(1)) * Dim(w_.stride[d])));
    }
    const ValueId spread = places_ == 1 ? gradient_ : g_.one("spread", {gradient_}, {{"stride", dims_of(w_.stride)}});
    return convolved(spread, weight_, before, after, w_.dilation);
  }

  /// All places of a stride beside each other as channels, then put where they belong.
  ValueId by_phases() {
    GradBuilder::Values parts;
    Numbers place(rank_, 0);
    for (std::int64_t n = 0; n < places_; ++n) {
      std::int64_t rest = n;
      for (std::size_t d = rank_; d-- > 0;) place[d] = rest % w_.stride[d], rest /= w_.stride[d];
      parts.push_back(of_place(place));
    }
    return put_in_place(g_.one("cat", parts, {{"dim", Dim(1)}}));
  }

  ValueId of_place(const Numbers& place) {
    ValueId weight = weight_;
    Numbers before, after, dilation;
    for (std::size_t d = 0; d < rank_; ++d) {
      const Phase phase(w_, d, place[d], more_[d]);
      if (phase.count == 0) return nothing();
      before.push_back(phase.before), after.push_back(phase.after), dilation.push_back(phase.dilation);
      const Dim end(phase.weight + (phase.count - 1) * phase.step + 1);
      if (phase.count != w_.kernel[d]) weight = g_.one("slice", {weight}, {{"dim", Dim(static_cast<std::int64_t>(2 + d))}, {"end", end}, {"start", Dim(phase.weight)}, {"step", Dim(phase.step)}});
    }
    return convolved(gradient_, weight, before, after, dilation);
  }

  /// No weight meets these places.
  ValueId nothing() {
    const ir::Type type = g_.type(gradient_);
    Shape shape{type.shape[0], g_.shape(weight_)[1] * Dim(w_.groups)};
    for (std::size_t d = 0; d < rank_; ++d) shape.push_back(strides(d));
    return g_.nodes().full(0.0, type.dtype, shape);
  }

  /// With the kernel backwards, and groups of its channels the other way round.
  ValueId convolved(ValueId x, ValueId weight, const Numbers& before, const Numbers& after, const Numbers& dilation) {
    std::vector<Dim> spatial;
    for (std::size_t d = 0; d < rank_; ++d) spatial.emplace_back(static_cast<std::int64_t>(2 + d));
    const ValueId grouped = reordered(g_, split(g_, weight, 0, w_.groups), {0, 2, 1});  // [G, C/G, O/G, k...]
    const Shape shape = g_.type(grouped).shape, kernels = g_.type(weight).shape;
    const ValueId backwards = g_.one("flip", {g_.reshape(grouped, joined({shape[0] * shape[1], shape[2]}, kernels))}, {{"dims", spatial}});
    return g_.one("conv_sum", {x, backwards}, window_attributes(Numbers(rank_, 1), before, after, dilation, w_.groups));
  }

  /// [N, places * C, q...] as [N, C, in...].
  ValueId put_in_place(ValueId y) {
    const Shape shape = g_.type(y).shape;
    const Dim channels = floor_div(shape[1], Dim(places_));
    const auto rank = static_cast<std::int64_t>(rank_);
    Shape apart{shape[0]}, joined{shape[0], channels};
    Numbers order{0, 1 + rank};
    for (std::int64_t d = 0; d < rank; ++d) {
      const auto i = static_cast<std::size_t>(d);
      apart.emplace_back(w_.stride[i]), joined.push_back(shape[2 + i] * Dim(w_.stride[i]));
      order.insert(order.end(), {2 + rank + d, 1 + d});
    }
    apart.push_back(channels);
    apart.insert(apart.end(), shape.begin() + 2, shape.end());
    y = g_.reshape(permute_by(g_.nodes(), g_.reshape(y, apart), order), joined);
    for (std::size_t d = 0; d < rank_; ++d) {
      const std::int64_t start = w_.before[d] - first_[d] * w_.stride[d];
      if (start == 0 && strides(d) * Dim(w_.stride[d]) == w_.in[d]) continue;
      y = g_.one("slice", {y}, {{"dim", Dim(static_cast<std::int64_t>(2 + d))}, {"end", Dim(start) + w_.in[d]}, {"start", Dim(start)}, {"step", Dim(1)}});
      if (!(g_.type(y).shape[2 + d] == w_.in[d])) throw Exception(Code::unsupported, kUnknownSize);  // what is left was not found to be all
    }
    return y;
  }

  GradBuilder& g_;
  const Windows& w_;
  ValueId gradient_, weight_;
  std::size_t rank_;
  Numbers first_, more_;  // the first q, and how many more there are than results
  std::int64_t places_ = 1;  // within all strides
};

/// For tensors of a device one node, which a library there may have a function for, where all sizes are known; in the host's memory what our own kernels make of it.
ValueId gradient_of_input(GradBuilder& g, const Windows& w, ValueId gradient, ValueId weight) {
  const bool is_known = std::ranges::all_of(w.in, &Dim::is_constant) && std::ranges::all_of(w.out, &Dim::is_constant);
  if (g.type(gradient).device.is_host() || !is_known) return GradientOfInput(g, w, gradient, weight)();
  return g.one("conv_input_sum", {weight, gradient},
               {{"before", dims_of(w.before)}, {"dilation", dims_of(w.dilation)}, {"groups", Dim(w.groups)}, {"sizes", w.in}, {"stride", dims_of(w.stride)}});
}

/// Places of a `conv_sum`'s input are told apart by numbers, those within its strides too.
void require_known_windows(const OpQuery& q, std::span<const Dim> sizes) {
  const Shape &w = q.type(0).shape, &g = q.type(1).shape;
  const auto stride = per_dim(q, "stride", sizes.size(), 1), dilation = per_dim(q, "dilation", sizes.size(), 1);
  per_dim(q, "before", sizes.size(), 0);
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    TENON_USER_CHECK(stride[d] > 0 && dilation[d] > 0, "stride and dilation must be positive");
    kernel_size(w[2 + d]);
    known(sizes[d]), known(g[2 + d]);
    TENON_USER_CHECK(sizes[d].constant() > 0 && sizes[d].constant() <= INT64_MAX >> 20, "size {} of the input of a convolution", sizes[d].constant());
  }
}

}  // namespace

Result<std::vector<ir::Type>> types_of_conv_input_sum(const OpQuery& q) {
  infer::require_operands(q, 2, 2);
  const Shape &w = q.type(0).shape, &g = q.type(1).shape;
  Shape sizes = q.integers("sizes");
  TENON_USER_CHECK(w.size() >= 3 && g.size() == w.size() && sizes.size() + 2 == w.size(), "weight and gradient of {} and {} dimensions do not go with {} sizes", w.size(), g.size(), sizes.size());
  infer::require_equal(q.graph(), w[0], g[1], "the channels of the weight and of the gradient");
  TENON_USER_CHECK(std::find(g.begin() + 2, g.end(), Dim(0)) == g.end(), "the gradient of shape {} has no places, which no convolution gives", infer::text(q.graph(), g));
  require_known_windows(q, sizes);
  const std::int64_t groups = q.constant_integer("groups", 1);
  TENON_USER_CHECK(groups > 0 && mod(w[0], Dim(groups)) == Dim(0), "{} output channels do not split into {} groups", infer::text(q.graph(), w[0]), groups);
  sizes.insert(sizes.begin(), {g[0], w[1] * Dim(groups)});
  return infer::one(q, infer::shared_dtype(q), std::move(sizes));
}

GradBuilder::Values conv_input_sum(NodeBuilder& nodes, const OpQuery& query) {
  GradBuilder g(nodes, query, {}, {});
  const ValueId weight = g.operand(0), gradient = g.operand(1);
  Shape input(2, Dim(0));  // of which only the spatial part matters here
  for (const Dim& size : query.integers("sizes")) input.push_back(size);
  const Windows w(query, input, g.shape(gradient), g.shape(weight));
  return {GradientOfInput(g, w, gradient, weight)()};
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
  std::vector<std::int64_t> after;
  for (const Dim& d : w.after) after.push_back(known(d));
  return {gradient_of_input(g, w, of_result, weight), g.one("conv_sum", {x, weight}, window_attributes(w.stride, w.before, after, w.dilation, w.groups))};
}

}  // namespace tenon::ops::gradients
