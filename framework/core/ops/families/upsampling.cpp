// Interpolation onto another grid (upsample in every mode) and at given places (grid_sampler), with ATen's arithmetic.
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

/// What one result reads of one dimension: indices and their weights.
struct Taps {
  std::vector<Scalar> index, weight;
};

/// The sum over all combinations of taps of weight times element; `load` takes one index a dimension.
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

/// Keys 1981, with a = -0.75 as ATen and OpenCV take it: the weights of the elements at -1, 0, 1, 2 for a place t in [0, 1). The
/// polynomials are factored, which loses less than ATen's Horner forms.
std::vector<Scalar> cubic_weights(Scalars& s, Scalar t) {
  const Scalar one = s.like(t, 1), rest = s.sub(one, t), a = s.like(t, -0.75);
  const auto near = [&](Scalar x, Scalar y) {  // y is 1 - x
    return s.mul(y, s.sub(s.add(one, x), s.mul(s.mul(s.like(t, 2 - 0.75), x), x)));
  };
  const auto far = [&](Scalar x, Scalar y) { return s.mul(s.mul(s.mul(a, x), y), y); };
  return {far(t, rest), near(t, rest), near(rest, t), far(rest, t)};
}

Scalar clamp_index(Scalars& s, Scalar i, const Dim& size) { return s.minimum(s.maximum(i, s.extent(Dim(0))), s.extent(size - Dim(1))); }

// ---- upsample

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
    const auto is_open = [&](std::size_t d) { return grid.factors[d] > 0 && !(grid.size[d].is_constant() && a.type(x).shape[d + 2].is_constant()); };
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

// ---- grid_sampler

enum class Outside : std::uint8_t { zeros, border, reflection };

struct Sampler {
  std::string mode;
  Outside outside;
  bool align;
  std::size_t rank;
  DType stored;

  explicit Sampler(const OpQuery& q) : mode(q.text("mode", "bilinear")), align(q.flag("align_corners")), rank(q.type(0).rank() - 2), stored(q.type(1).dtype) {
    const std::string padding = q.text("padding_mode", "zeros");
    outside = padding == "border" ? Outside::border : padding == "reflection" ? Outside::reflection : Outside::zeros;
  }

  /// ATen rounds half floats after each operation, which decides which element is the nearest.
  Scalar rounded(Scalars& s, Scalar x) const { return mode == "nearest" && is_reduced_float(stored) ? s.convert(s.convert(x, stored), x.dtype) : x; }

  /// From [-1, 1] to elements of the input. ATen's vectors of float32 of images subtract the half in one rounding with the product.
  Scalar place(Scalars& s, Scalar x, const Dim& size) const {
    const Scalar half = s.like(x, 0.5), reach = s.mul(s.convert(s.extent(align ? size - Dim(1) : size), x.dtype), half), from = rounded(s, s.add(x, s.like(x, 1)));
    if (mode != "nearest" && x.dtype != DType::f64 && rank == 2 && !align) return s.fma(from, reach, s.like(x, -0.5));
    const Scalar at = rounded(s, s.mul(from, reach));
    return align ? at : rounded(s, s.sub(at, half));
  }

  /// Moves a place into the input as the padding mode says. At both ends it no longer follows the coordinate. NaN is ATen's
  /// first place in an image, and its last one in a volume.
  Scalar inside(Scalars& s, Scalar x, const Dim& size) const {
    if (outside == Outside::zeros) return x;
    if (outside == Outside::reflection) x = reflected(s, x, size);
    const Scalar first = s.like(x, 0), last = s.convert(s.extent(size - Dim(1)), x.dtype);
    if (rank == 3) return s.select(s.lt(x, last), s.select(s.le(x, first), first, x), last);
    return s.select(s.gt(x, first), s.select(s.ge(x, last), last, x), first);
  }

  /// In volumes ATen adds nothing for elements that are not there, whatever their weight: of places far outside, and NaN, the weights are made numbers.
  Scalar near(Scalars& s, Scalar x, const Dim& size) const {
    if (outside != Outside::zeros || rank == 2) return x;
    const Scalar before = s.like(x, -2), after = s.convert(s.extent(size + Dim(1)), x.dtype);
    return s.select(s.logical_and(s.gt(x, before), s.lt(x, after)), x, before);
  }

  Scalar reflected(Scalars& s, Scalar x, const Dim& size) const {
    if (align && size == Dim(1)) return s.like(x, 0);
    const Scalar low = s.like(x, align ? 0 : -0.5), span = s.convert(s.extent(align ? size - Dim(1) : size), x.dtype);
    const Scalar distance = rounded(s, s.abs(s.sub(x, low))), extra = s.binary(Primitive::fmod, distance, span);
    const Scalar flips = s.unary(Primitive::floor, s.div(distance, span));
    const Scalar even = s.eq(s.binary(Primitive::fmod, flips, s.like(x, 2)), s.like(x, 0));
    return rounded(s, s.add(s.select(even, extra, rounded(s, s.sub(span, extra))), low));
  }

  Taps taps(Scalars& s, Scalar coordinate, const Dim& size) const {
    const Scalar x = place(s, coordinate, size);
    if (mode == "bicubic") return cubic(s, x, size);
    const Scalar at = near(s, inside(s, x, size), size);
    if (mode == "nearest") return {{s.convert(s.unary(Primitive::round, at), DType::i64)}, {}};
    const Scalar low = s.unary(Primitive::floor, at), rest = s.sub(at, low), index = s.convert(low, DType::i64);
    return {{index, IndexMath(s).add(index, Dim(1))}, {s.sub(s.add(low, s.like(low, 1)), at), rest}};
  }

  /// Each of the four elements is moved inside by itself.
  Taps cubic(Scalars& s, Scalar x, const Dim& size) const {
    const Scalar low = s.unary(Primitive::floor, x);
    Taps taps{{}, cubic_weights(s, s.sub(x, low))};
    for (double k = -1; k <= 2; ++k) taps.index.push_back(s.convert(inside(s, s.add(low, s.like(low, k)), size), DType::i64));
    return taps;
  }
};

/// The four elements around a place of an image, in ATen's order: each with the product of its weights, added in one rounding.
Scalar bilinear(Scalars& s, std::span<const Taps> taps, const std::function<Scalar(std::span<const Scalar>)>& load) {
  std::optional<Scalar> sum;
  for (std::size_t y = 0; y < 2; ++y)
    for (std::size_t x = 0; x < 2; ++x) {
      const Scalar chosen[] = {taps[0].index[y], taps[1].index[x]}, weight = s.mul(taps[0].weight[y], taps[1].weight[x]), element = load(chosen);
      sum = sum ? s.fma(weight, element, *sum) : s.mul(weight, element);
    }
  return *sum;
}

/// The last dimension of the grid holds (x, y) or (x, y, z): the input's dimensions from the last on.
LoopBody grid_loop(const OpQuery& q) {
  const Sampler sampler(q);
  Shape extents{q.type(0).shape[0], q.type(0).shape[1]};
  extents.insert(extents.end(), q.type(1).shape.begin() + 1, q.type(1).shape.end() - 1);
  return elementwise(extents, [&](Scalars& s) {
    IndexMath m(s);
    const auto at = m.loops(sampler.rank + 2);
    std::vector<Taps> taps;
    for (std::size_t d = 0; d < sampler.rank; ++d) {
      std::vector<Scalar> index{at[0]};
      index.insert(index.end(), at.begin() + 2, at.end());
      index.push_back(m.of(Dim(static_cast<std::int64_t>(sampler.rank - 1 - d))));
      taps.push_back(sampler.taps(s, s.load(1, q.type(1).dtype, index), q.type(0).shape[d + 2]));
    }
    const auto element = [&](std::span<const Scalar> spatial) {
      std::vector<Scalar> index{at[0], at[1]};
      std::optional<Scalar> there;
      for (std::size_t d = 0; d < spatial.size(); ++d) {
        there = both(s, there, s.logical_and(s.ge(spatial[d], m.of(0)), s.lt(spatial[d], m.of(q.type(0).shape[d + 2]))));
        index.push_back(spatial[d]);
      }
      const DType t = q.type(0).dtype;
      return s.load_if(*there, 0, t, index, s.constant(compute_type(t), 0.0));
    };
    if (sampler.mode == "bilinear" && sampler.rank == 2 && q.type(0).dtype != DType::f64) return bilinear(s, taps, element);
    std::vector<Scalar> chosen;
    return weighted(s, taps, chosen, element);
  });
}

Values grid_adapt(ForeignArguments& a) {
  constexpr const char* kModes[] = {"bilinear", "nearest", "bicubic"};
  constexpr const char* kPaddings[] = {"zeros", "border", "reflection"};
  const std::int64_t mode = a.constant("interpolation_mode"), padding = a.constant("padding_mode");
  TENON_USER_CHECK(mode >= 0 && mode < 3 && padding >= 0 && padding < 3, "grid_sampler: there is no mode {} with padding {}", mode, padding);
  return a.call("grid_sampler", {a.value("input"), a.value("grid")},
                {{"align_corners", a.flag("align_corners")}, {"mode", std::string(kModes[mode])}, {"padding_mode", std::string(kPaddings[padding])}});
}

Op grid_sampler_op() {
  Op op;
  op.name = "grid_sampler";
  op.schema = "(Tensor input, Tensor grid, *, str mode='bilinear', str padding_mode='zeros', bool align_corners=False) -> Tensor";
  op.aliases = names({"torch.grid_sampler", "torch.grid_sampler_2d", "torch.grid_sampler_3d"}, "(input, grid, interpolation_mode, padding_mode, align_corners)", grid_adapt);
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 2, 2);
    const DType t = infer::shared_dtype(q);
    const Shape &x = q.type(0).shape, &grid = q.type(1).shape;
    TENON_USER_CHECK(is_float(t), "grid_sampler takes floats, not {}", name_of(t));
    TENON_USER_CHECK((x.size() == 4 || x.size() == 5) && grid.size() == x.size(), "grid_sampler takes 4 or 5 dimensions, given {} and {}", x.size(), grid.size());
    TENON_USER_CHECK(grid.back() == Dim(static_cast<std::int64_t>(x.size() - 2)), "the grid's last dimension must have size {}", x.size() - 2);
    const std::string mode = q.text("mode", "bilinear"), padding = q.text("padding_mode", "zeros");
    TENON_USER_CHECK(mode == "bilinear" || mode == "nearest" || mode == "bicubic", "grid_sampler has no mode '{}'", mode);
    TENON_USER_CHECK(padding == "zeros" || padding == "border" || padding == "reflection", "grid_sampler has no padding '{}'", padding);
    TENON_USER_CHECK(x.size() == 4 || mode != "bicubic", "grid_sampler(): bicubic interpolation only supports 4D input");
    infer::require_equal(q.graph(), x[0], grid[0], "batch sizes");
    for (std::size_t d = 2; d < x.size(); ++d) TENON_USER_CHECK(!(x[d] == Dim(0)), "the input must have non-empty spatial dimensions");
    Shape shape{x[0], x[1]};
    shape.insert(shape.end(), grid.begin() + 1, grid.end() - 1);
    return infer::one(q, t, std::move(shape));
  };
  op.traits.is_inferred_whole = true;
  op.loop = grid_loop;
  op.samples = [] {
    std::vector<Sample> all;
    const auto add = [&](const char* mode, const char* padding, bool align, DType t, std::vector<std::int64_t> x, std::vector<std::int64_t> grid) {
      all.push_back({.name = fmt::format("{}_{}_{}{}", mode, padding, name_of(t), align ? "_aligned" : ""),
                     .operands = {{.dtype = t, .shape = std::move(x)}, {.dtype = t, .shape = std::move(grid), .fill = Fill::unit}},
                     .attributes = {{"align_corners", align}, {"mode", std::string(mode)}, {"padding_mode", std::string(padding)}},
                     .tolerance = 64});
    };
    for (const char* padding : {"zeros", "border", "reflection"})
      for (const char* mode : {"bilinear", "bicubic"}) add(mode, padding, padding[0] == 'b', DType::f64, {2, 3, 5, 4}, {2, 3, 6, 2});
    add("bilinear", "zeros", false, DType::f32, {2, 3, 5, 4}, {2, 3, 6, 2});
    add("nearest", "border", false, DType::f64, {1, 2, 5, 4}, {1, 3, 3, 2});
    add("bilinear", "zeros", true, DType::f32, {1, 2, 3, 4, 3}, {1, 2, 3, 2, 3});
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
    if (!shape[d + 2].is_constant()) throw Exception(Code::unsupported, "a factor of a size that is not known");
    grid.size.emplace_back(static_cast<std::int64_t>(static_cast<double>(shape[d + 2].constant()) * grid.factors[d]));
  }
  return grid;
}

Family upsampling_ops() { return {upsample_op(), grid_sampler_op()}; }

}  // namespace tenon::ops
