// Interpolation at given places (grid_sampler), with ATen's arithmetic.
#include <algorithm>

#include "core/ops/build/grad_builder.h"
#include "core/ops/families/upsampling.h"
#include "core/ops/gradients/gradient.h"
#include "core/ops/notation/move.h"
#include "core/ops/notation/window.h"

namespace tenon::ops {

namespace {

using ir::Dim;
using ir::Shape;

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

}  // namespace

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

}  // namespace tenon::ops
