// Interpolation that averages over the elements between those of a smaller grid (antialias=True), one dimension after the other as ATen
// does. No op is declared here: the names belong to `upsample`.
#include <algorithm>
#include <cmath>

#include "core/ops/families/upsampling.h"
#include "core/ops/notation/formula.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::Shape;
using V = ir::ValueId;

/// How much an element counts at a distance, in elements of the coarser grid: nothing from `reach` on.
struct Filter {
  double reach = 1;
  V (*weight)(Formula& f, V distance) = nullptr;
};

V linear_weight(Formula& f, V distance) { return f.at_least(f.sub(f.number(1), f.one("abs", distance)), 0); }

/// Keys 1981, with a = -0.5 as ATen and Pillow take it here.
V cubic_weight(Formula& f, V distance) {
  constexpr double a = -0.5;
  const V x = f.one("abs", distance);
  const V near = f.add(f.mul(f.mul(f.sub(f.mul(x, f.number(a + 2)), f.number(a + 3)), x), x), f.number(1));
  const V far = f.mul(f.sub(f.mul(f.add(f.mul(f.sub(x, f.number(5)), x), f.number(8)), x), f.number(4)), f.number(a));
  return f.where(f.two("lt", x, f.number(1)), near, f.where(f.two("lt", x, f.number(2)), far, f.number(0)));
}

V counted(ForeignArguments& a, std::int64_t count, Shape shape) {
  return reshape_to(a.builder(), a.one("arange", {}, {{"dtype", DType::f64}, {"end", Dim(count)}, {"start", Dim(0)}, {"step", Dim(1)}}), std::move(shape));
}

/// What each result reads of a dimension: places, which of them lie in the input, and their shares; a row a result.
struct Window {
  V place, inside, share;
  std::int64_t width = 0;
};

Window window_of(ForeignArguments& a, std::int64_t in, std::int64_t out, double scale, const Filter& filter) {
  Formula f(a);
  const double stretch = std::max(scale, 1.0), reach = filter.reach * stretch;
  Window w;
  w.width = static_cast<std::int64_t>(std::ceil(reach)) * 2 + 1;
  const V center = f.mul(f.add(counted(a, out, {Dim(out), Dim(1)}), f.number(0.5)), f.number(scale));
  const V first = f.at_least(f.one("floor", f.add(center, f.number(0.5 - reach))), 0);
  const V end = a.one("clamp_max", {f.one("floor", f.add(center, f.number(0.5 + reach))), f.number(static_cast<double>(in))});
  w.place = f.add(first, counted(a, w.width, {Dim(1), Dim(w.width)}));
  w.inside = f.two("lt", w.place, end);
  const V distance = f.mul(f.add(f.sub(w.place, center), f.number(0.5)), f.number(1 / stretch));
  const V weight = f.where(w.inside, filter.weight(f, distance), f.number(0));
  w.share = f.div(weight, f.sum(weight, {Dim(1)}, true));
  return w;
}

V resampled(ForeignArguments& a, V x, std::size_t dim, std::int64_t out, double scale, const Filter& filter) {
  Formula f(a);
  const std::int64_t in = f.shape(x)[dim].constant();
  const Window w = window_of(a, in, out, scale, filter);
  const V last = f.cast(a.one("clamp_max", {w.place, f.number(static_cast<double>(in - 1))}), DType::i64);
  const V taken = a.one("index_select", {x, reshape_to(a.builder(), last, {Dim(out * w.width)})}, {{"dim", Dim(static_cast<std::int64_t>(dim))}});
  Shape split = f.shape(x), along(f.rank(x) + 1, Dim(1));
  split[dim] = along[dim] = Dim(out);
  split.insert(split.begin() + static_cast<std::ptrdiff_t>(dim) + 1, Dim(w.width));
  along[dim + 1] = Dim(w.width);
  const auto over_all = [&](V v) { return reshape_to(a.builder(), v, along); };
  const V element = f.where(over_all(w.inside), reshape_to(a.builder(), taken, split), f.number(0));
  return f.sum(f.mul(element, over_all(f.cast(w.share, f.dtype(x)))), {Dim(static_cast<std::int64_t>(dim) + 1)});
}

/// Input elements per output element.
double scale_of(std::int64_t in, std::int64_t out, bool align, double factor) {
  if (align) return out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
  return factor > 0 ? 1 / factor : static_cast<double>(in) / static_cast<double>(out);
}

Adapt antialiased(Filter filter) {
  return [filter](ForeignArguments& a) -> Values {
    constexpr std::size_t kRank = 2;
    V x = a.value("input");
    const DType t = a.type(x).dtype;
    if (!is_float(t) || is_reduced_float(t)) throw Exception(Code::unsupported, "antialiased interpolation of this dtype");
    const NewGrid grid = new_grid(a, kRank);
    for (std::size_t d = kRank; d-- > 0;) {
      const Dim in = a.type(x).shape[d + 2], out = grid.size[d];
      if (!in.is_constant() || !out.is_constant()) throw Exception(Code::unsupported, "antialiased interpolation of a size that is not known");
      TENON_USER_CHECK(in.constant() > 0 && out.constant() > 0, "Input and output sizes should be greater than 0");
      if (in == out) continue;  // as they are, whatever the factor
      const double factor = d < grid.factors.size() ? grid.factors[d] : 0;
      x = resampled(a, x, d + 2, out.constant(), scale_of(in.constant(), out.constant(), a.flag("align_corners"), factor), filter);
    }
    return {x};
  };
}

}  // namespace

std::vector<Alias> antialias_names() {
  constexpr const char* kSignature = "(input, output_size=None, align_corners=False, scale_factors=None)";
  return names({"torch._upsample_bilinear2d_aa"}, kSignature, antialiased({1, linear_weight})) +
         names({"torch._upsample_bicubic2d_aa"}, kSignature, antialiased({2, cubic_weight}));
}

}  // namespace tenon::ops
