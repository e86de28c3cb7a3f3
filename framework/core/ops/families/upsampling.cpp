// Interpolation onto another grid (upsample in every mode), with ATen's arithmetic.
#include "core/ops/families/upsampling.h"

#include <algorithm>
#include <cmath>

#include "core/ops/build/grad_builder.h"
#include "core/ops/gradients/gradient.h"
#include "core/ops/gradients/preimages.h"
#include "core/ops/notation/move.h"
#include "core/ops/notation/window.h"
#include "core/ops/size_questions.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::Shape;

Scalar clamp_index(Scalars& s, Scalar i, const Dim& size) { return s.minimum(s.maximum(i, s.extent(Dim(0))), s.extent(size - Dim(1))); }

// ---- upsample

/// The largest factor by which a size that is not known is multiplied.
constexpr double kMostFactor = 1024;

/// One dimension of an upsample: input and output sizes, and the factor that was given (0: none).
struct Resized {
  Dim in, out;
  double factor;
  bool align;

  Resized(const OpQuery& q, std::size_t d, std::size_t rank)
      : in(q.type(0).shape[q.type(0).rank() - rank + d]), out(q.integers("output_size")[d]), factor(q.number(fmt::format("scale{}", d), 0)), align(q.flag("align_corners")) {}

  /// Whether the factor is the one that the sizes say.
  bool is_by_size() const { return align || !(factor > 0); }

  /// Input elements per output element.
  Scalar scale(Scalars& s, DType t) const {
    if (!is_by_size()) return s.constant(t, 1 / factor);
    const auto size = [&](const Dim& d) { return s.convert(s.extent(d), t); };
    if (!align) return s.div(size(in), size(out));
    const Scalar gaps = size(out - Dim(1)), zero = s.constant(t, 0.0);
    return s.select(s.gt(gaps, zero), s.div(size(in - Dim(1)), s.maximum(gaps, s.like(gaps, 1))), zero);
  }
};

/// A size times a factor, rounded down; nothing where that is no product of sizes.
std::optional<Dim> multiplied(const Dim& size, double factor) {
  if (size.is_constant()) return Dim(static_cast<std::int64_t>(static_cast<double>(size.constant()) * factor));
  if (factor != std::floor(factor) || !(factor > 0 && factor < kMostFactor)) return {};
  return size * Dim(static_cast<std::int64_t>(factor));
}

/// Whether every place times the step from one result to the next, in elements of the input, is exact in float32.
bool steps_are_exact(const NewGrid& grid, const Shape& shape, std::size_t d) {
  const Dim &in = shape[d + 2], &out = grid.size[d];
  const bool by_factor = d < grid.factors.size() && grid.factors[d] > 0;
  if (!by_factor && !(in.is_constant() && out.is_constant() && out.constant() > 0)) return in == out;
  int exponent = 0;
  const double step = by_factor ? 1 / grid.factors[d] : static_cast<double>(in.constant()) / static_cast<double>(out.constant());
  return std::frexp(step, &exponent) == 0.5;
}

/// Whether sizes that stay the same or double do so by that factor.
bool sizes_say_the_factor(const NewGrid& grid, const Shape& shape, std::size_t d) {
  if (d >= grid.factors.size() || !(grid.factors[d] > 0)) return true;
  const Dim &in = shape[d + 2], &out = grid.size[d];
  return (in == out ? grid.factors[d] == 1 : out == in + in ? grid.factors[d] == 2 : true);
}

/// ATen's kernel of images goes by the sizes where they stay the same or double, whatever the factor; the others do what the factor says.
Taps nearest_taps(Scalars& s, const Resized& r, Scalar o, bool exact, std::size_t rank) {
  const bool by_size = r.is_by_size() || (!exact && rank == 2);
  if (by_size && r.in == r.out) return {{o}, {}};
  if (by_size && !exact && r.out == r.in + r.in) return {{s.binary(Primitive::floor_div, o, s.extent(Dim(2)))}, {}};
  Scalar place = s.convert(o, DType::f32);  // ATen computes this in float32 for every dtype
  if (exact) place = s.add(place, s.like(place, 0.5));
  const Scalar index = s.convert(s.unary(Primitive::floor, s.mul(place, r.scale(s, DType::f32))), DType::i64);
  return {{s.minimum(index, s.extent(r.in - Dim(1)))}, {}};
}

/// In float64 for every dtype: what is lost of a place is multiplied by how steep the input is there.
Scalar source_place(Scalars& s, const Resized& r, Scalar o) {
  const Scalar at = s.convert(o, DType::f64), scale = r.scale(s, DType::f64);
  if (r.align) return s.mul(scale, at);
  return s.fma(scale, s.add(at, s.like(at, 0.5)), s.like(at, -0.5));
}

/// The index at or before a place, and how far the place lies beyond it, in the dtype `t`.
std::pair<Scalar, Scalar> split_place(Scalars& s, const Resized& r, Scalar place, DType t) {
  const Scalar last = s.convert(s.extent(r.in - Dim(1)), place.dtype);
  const Scalar whole = s.minimum(s.unary(Primitive::floor, place), last);
  const Scalar rest = s.minimum(s.maximum(s.sub(place, whole), s.like(place, 0)), s.like(place, 1));
  return {s.convert(whole, DType::i64), s.convert(rest, t)};
}

/// ATen takes the elements as they are where the size stays the same, whatever the factor.
Taps linear_taps(Scalars& s, const Resized& r, Scalar o, DType t) {
  if (r.in == r.out) return {{o}, {}};
  const Scalar place = source_place(s, r, o);
  const auto [index, rest] = split_place(s, r, s.maximum(place, s.like(place, 0)), t);
  const Scalar next = s.minimum(IndexMath(s).add(index, Dim(1)), s.extent(r.in - Dim(1)));
  return {{index, next}, {s.sub(s.like(rest, 1), rest), rest}};
}

Taps cubic_taps(Scalars& s, const Resized& r, Scalar o, DType t) {
  if (r.is_by_size() && r.in == r.out) return {{o}, {}};
  const auto [index, rest] = split_place(s, r, source_place(s, r, o), t);
  Taps taps{{}, cubic_weights(s, rest)};
  for (std::int64_t k = -1; k <= 2; ++k) taps.index.push_back(clamp_index(s, IndexMath(s).add(index, Dim(k)), r.in));
  return taps;
}

Shape upsampled_shape(const OpQuery& q) {
  const auto size = q.integers("output_size");
  Shape shape = q.type(0).shape;
  TENON_USER_CHECK(shape.size() == size.size() + 2, "It is expected input_size equals to {}, but got size {}", size.size() + 2, shape.size());
  const std::string mode = q.text("mode");
  TENON_USER_CHECK(mode == "linear" || mode == "cubic" || mode == "nearest" || mode == "nearest_exact", "there is no interpolation '{}'; there are linear, cubic, nearest, nearest_exact", mode);
  for (std::size_t d = 0; d < size.size(); ++d) {
    const double factor = q.number(fmt::format("scale{}", d), 0);
    TENON_USER_CHECK(factor == 0 || (factor > 1e-9 && factor < 1e9), "a size cannot be scaled by {}", factor);
    TENON_USER_CHECK(infer::taken_positive_or_0(q.graph(), size[d] - Dim(1)) && infer::taken_positive_or_0(q.graph(), shape[d + 2] - Dim(1)), "Input and output sizes should be greater than 0");
    shape[d + 2] = size[d];
  }
  return shape;
}

/// What the element at `o` reads of one dimension.
Taps upsample_taps(Scalars& s, const OpQuery& q, std::size_t d, Scalar o) {
  const std::string mode = q.text("mode");
  const std::size_t rank = q.integers("output_size").size();
  const DType t = compute_type(q.type(0).dtype);
  const Resized r(q, d, rank);
  if (mode == "linear") return linear_taps(s, r, o, t);
  return mode == "cubic" ? cubic_taps(s, r, o, t) : nearest_taps(s, r, o, mode == "nearest_exact", rank);
}

LoopBody upsample_loop(const OpQuery& q) {
  const std::size_t rank = q.integers("output_size").size();
  return elementwise(upsampled_shape(q), [&](Scalars& s) {
    const auto at = IndexMath(s).loops(rank + 2);
    std::vector<Taps> taps;
    for (std::size_t d = 0; d < rank; ++d) taps.push_back(upsample_taps(s, q, d, at[d + 2]));
    std::vector<Scalar> chosen;
    return weighted(s, taps, chosen, [&](std::span<const Scalar> spatial) {
      std::vector<Scalar> index{at[0], at[1]};
      index.insert(index.end(), spatial.begin(), spatial.end());
      return s.load(0, q.type(0).dtype, index);
    });
  });
}

/// Which results read each element of one dimension, of known sizes, and with what weights.
GatheredSum upsample_readers(const OpQuery& q, std::size_t d) {
  Scalars s;
  const Taps taps = upsample_taps(s, q, d, s.loop_index(0));
  for (const Scalar& i : taps.index) s.result(i);
  for (const Scalar& w : taps.weight) s.result(w);
  return readers(s.take(), taps.index.size(), q.type(0).shape[d + 2].constant(), q.integers("output_size")[d].constant());
}

/// Dimension by dimension, as every element is a product of weights.
GradBuilder::Values upsample_gradient(GradBuilder& g) {
  const OpQuery& q = g.query();
  constexpr std::int64_t kLongest = 1 << 16;
  const auto is_short = [](const Dim& d) { return d.is_constant() && d.constant() <= kLongest; };
  const auto sizes = q.integers("output_size");
  const bool is_known = std::ranges::all_of(sizes, is_short) && std::all_of(q.type(0).shape.begin() + 2, q.type(0).shape.end(), is_short);
  if (!is_known || !g.nodes().device().is_host())
    return {*loop_gradients(g.nodes(), g.nodes().graph().value(g.result()).node, g.gradient())[0]};
  ir::ValueId sum = g.nodes().cast(g.gradient(), compute_type(q.type(0).dtype));
  for (std::size_t d = sizes.size(); d-- > 0;) sum = gathered_sum(g.nodes(), sum, d + 2, upsample_readers(q, d));
  return {g.nodes().cast(sum, q.type(0).dtype)};
}

Adapt upsample_adapt(std::size_t rank, std::string mode) {
  return [=](ForeignArguments& a) {
    const ir::ValueId x = a.value("input");
    if (is_complex(a.type(x).dtype)) throw Exception(Code::unsupported, "interpolation of complex numbers");  // which torch refuses
    if (!is_float(a.type(x).dtype) && !mode.starts_with("nearest")) throw Exception(Code::unsupported, "interpolation between integers");
    const NewGrid grid = new_grid(a, rank);
    const auto is_open = [&](std::size_t d) {
      const Dim &in = a.type(x).shape[d + 2], &out = grid.size[d];
      return grid.factors[d] > 0 && !(out.is_constant() && in.is_constant()) && out != multiplied(in, grid.factors[d]);
    };
    for (std::size_t d = 0; d < grid.factors.size(); ++d)
      if (is_open(d)) throw Exception(Code::unsupported, "a factor beside sizes that are not known");
    // How the input lies decides whether ATen finds the nearest element of float64 in float32, and of volumes by the sizes or by the factor.
    for (std::size_t d = 0; d < rank && mode.starts_with("nearest"); ++d) {
      if (a.type(x).dtype == DType::f64 && !steps_are_exact(grid, a.type(x).shape, d)) throw Exception(Code::unsupported, "the nearest elements of float64 for sizes that do not divide by powers of two");
      if (rank == 3 && mode == "nearest" && !sizes_say_the_factor(grid, a.type(x).shape, d)) throw Exception(Code::unsupported, "the nearest elements of a volume by a factor beside sizes that stay or double");
    }
    ir::Attributes attributes{{"align_corners", a.flag("align_corners")}, {"mode", mode}};
    for (std::size_t d = 0; d < grid.factors.size(); ++d) attributes.emplace_back(fmt::format("scale{}", d), grid.factors[d]);
    attributes.emplace_back("output_size", grid.size);
    return a.call("upsample", {x}, std::move(attributes));
  };
}

Op upsample_op() {
  Op op;
  op.name = "upsample";
  op.schema = "(Tensor input, *, int[] output_size, str mode, bool align_corners=False, float? scale0=None, float? scale1=None, float? scale2=None) -> Tensor";
  const std::string plain = "(input, output_size=None, scale_factors=None)", aligned = "(input, output_size=None, align_corners=False, scale_factors=None)";
  for (std::size_t n : {1u, 2u, 3u}) {
    op.aliases = op.aliases + names({fmt::format("torch.upsample_nearest{}d", n)}, plain, upsample_adapt(n, "nearest")) +
                 names({fmt::format("torch._upsample_nearest_exact{}d", n)}, plain, upsample_adapt(n, "nearest_exact"));
    constexpr const char* kLinear[] = {"linear1d", "bilinear2d", "trilinear3d"};
    op.aliases = op.aliases + names({fmt::format("torch.upsample_{}", kLinear[n - 1])}, aligned, upsample_adapt(n, "linear"));
  }
  op.aliases = op.aliases + names({"torch.upsample_bicubic2d"}, aligned, upsample_adapt(2, "cubic")) + antialias_names();
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 1, 1);
    const std::string mode = q.text("mode");
    TENON_USER_CHECK(mode == "nearest" || mode == "nearest_exact" || mode == "linear" || mode == "cubic", "there is no mode '{}'", mode);
    TENON_USER_CHECK(!is_bool(q.type(0).dtype) || mode.starts_with("nearest"), "bools have nothing between them: upsample takes them with mode nearest only");
    return infer::one(q, q.type(0).dtype, upsampled_shape(q));
  };
  op.traits.is_inferred_whole = true;
  op.loop = upsample_loop;
  op.grad = written(upsample_gradient);
  op.samples = [] {
    std::vector<Sample> all;
    const auto add = [&](std::string mode, DType t, std::vector<std::int64_t> shape, std::vector<Dim> size, bool align) {
      all.push_back({.name = fmt::format("{}_{}_{}{}", mode, shape.size() - 2, name_of(t), align ? "_aligned" : ""),
                     .operands = {{.dtype = t, .shape = shape}},
                     .attributes = {{"align_corners", align}, {"mode", mode}, {"output_size", size}},
                     .tolerance = 16});
    };
    for (const char* mode : {"nearest", "nearest_exact", "linear"}) {
      add(mode, DType::f32, {2, 3, 4, 5}, {8, 7}, false);
      add(mode, DType::f64, {1, 2, 6}, {4}, false);
      add(mode, DType::f16, {1, 2, 3, 2, 4}, {5, 2, 3}, false);
      add(mode, DType::f32, {1, 2, 5, 3}, {5, 6}, false);
      all.back().name += "_factors";
      all.back().attributes.insert(all.back().attributes.end(), {{"scale0", 1.15}, {"scale1", 2.3}});
      add(mode, DType::f64, {1, 2, 5}, {5}, false);
      all.back().name += "_factors";
      all.back().attributes.emplace_back("scale0", 1.1);
    }
    add("linear", DType::f32, {2, 3, 4, 5}, {7, 1}, true);
    add("cubic", DType::f32, {2, 3, 4, 5}, {8, 7}, false);
    add("cubic", DType::f64, {1, 2, 5, 5}, {3, 8}, true);
    add("nearest", DType::u8, {1, 2, 3, 3}, {6, 5}, false);
    return all;
  };
  return op;
}

}  // namespace

NewGrid new_grid(ForeignArguments& a, std::size_t rank) {
  const Shape shape = a.type(a.value("input")).shape;
  TENON_USER_CHECK(shape.size() == rank + 2, "It is expected input_size equals to {}, but got size {}", rank + 2, shape.size());
  NewGrid grid;
  if (const ForeignList* list = a["scale_factors"].as<ForeignList>())
    for (const ForeignArgument& f : *list) {
      const double* number = f.as<double>();
      const Dim* whole = f.as<Dim>();
      if (!number && !(whole && whole->is_constant())) throw Exception(Code::unsupported, "a scale factor that is no number");
      grid.factors.push_back(number ? *number : static_cast<double>(whole->constant()));
    }
  if (a.given("output_size")) grid.size = per_dim(a, "output_size", rank, {});
  TENON_USER_CHECK(grid.size.size() == rank || grid.factors.size() == rank, "Must specify exactly one of output_size and scale_factors");
  for (std::size_t d = grid.size.size(); d < grid.factors.size(); ++d) {
    const std::optional<Dim> size = multiplied(shape[d + 2], grid.factors[d]);
    if (!size) throw Exception(Code::unsupported, "a factor of a size that is not known");
    grid.size.push_back(*size);
  }
  return grid;
}

Scalar weighted(Scalars& s, std::span<const Taps> taps, std::vector<Scalar>& chosen, const std::function<Scalar(std::span<const Scalar>)>& load) {
  if (chosen.size() == taps.size()) return load(chosen);
  const Taps& own = taps[chosen.size()];
  std::optional<Scalar> sum;
  for (std::size_t k = 0; k < own.index.size(); ++k) {
    chosen.push_back(own.index[k]);
    Scalar part = weighted(s, taps, chosen, load);
    chosen.pop_back();
    if (!own.weight.empty()) part = s.mul(part, own.weight[k]);
    sum = sum ? s.add(*sum, part) : part;
  }
  return *sum;
}

/// The polynomials are factored, which loses less than ATen's Horner forms.
std::vector<Scalar> cubic_weights(Scalars& s, Scalar t) {
  const Scalar one = s.like(t, 1), rest = s.sub(one, t), a = s.like(t, -0.75);
  const auto near = [&](Scalar x, Scalar y) {  // y is 1 - x
    return s.mul(y, s.sub(s.add(one, x), s.mul(s.mul(s.like(t, 2 - 0.75), x), x)));
  };
  const auto far = [&](Scalar x, Scalar y) { return s.mul(s.mul(s.mul(a, x), y), y); };
  return {far(t, rest), near(t, rest), near(rest, t), far(rest, t)};
}

Family upsampling_ops() { return {upsample_op(), grid_sampler_op()}; }

}  // namespace tenon::ops
