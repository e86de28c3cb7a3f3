// Statistics and normalisations that are made of other ops. No op is declared here: the names belong to `layer_norm`.
#include <algorithm>

#include "core/ops/notation/formula.h"
#include "core/ops/notation/moments.h"
#include "core/ops/notation/running_statistics.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::Shape;
using V = ir::ValueId;

// ---- quantile

/// The arguments of a quantile, with the reduced dimension last.
struct Quantile {
  V x, q;               // q: [1] or [number of quantiles], as the last dimension of x's rank
  Shape before;         // the operand's shape
  std::size_t dim = 0;  // of `before`
  bool flat, one;       // over all elements; a single quantile
  std::string mode;
  std::int64_t size = 0;

  explicit Quantile(ForeignArguments& a) : x(a.value("self")), flat(!a.given("dim")), mode(a.text("interpolation", "linear")) {
    Formula f(a);
    const DType t = f.dtype(x);
    if (!is_float(t) || is_reduced_float(t)) throw Exception(Code::unsupported, "quantile of these dtypes");
    if (!a.is_tensor("q")) TENON_USER_CHECK(a.number("q", 0) >= 0 && a.number("q", 0) <= 1, "quantile() q must be in the range [0, 1]");
    q = a.is_tensor("q") ? a.value("q") : f.filled(a.number("q", 0), t, {});
    one = f.rank(q) == 0;
    TENON_USER_CHECK(f.rank(q) <= 1 && f.dtype(q) == t, "quantile() q must be a scalar or 1D tensor of the input's dtype");
    constexpr std::string_view kModes[] = {"linear", "lower", "higher", "midpoint", "nearest"};
    TENON_USER_CHECK(std::ranges::find(kModes, mode) != std::end(kModes),
                     "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {}", mode);
    before = f.shape(x);
    if (!flat) dim = static_cast<std::size_t>(a.dim("dim", before.size()));
    arrange(a);
  }

  Shape result(bool keep) const {
    Shape shape;
    for (std::size_t d = 0; d < before.size(); ++d) {
      if (!flat && d != dim) shape.push_back(before[d]);
      else if (keep) shape.emplace_back(1);
    }
    return shape;
  }

 private:
  void arrange(ForeignArguments& a) {
    Formula f(a);
    if (flat || before.empty()) x = reshape_to(a.builder(), x, {ir::product(before)});
    std::vector<std::int64_t> order;
    for (std::size_t d = 0; d < f.rank(x); ++d)
      if (d != dim) order.push_back(static_cast<std::int64_t>(d));
    order.push_back(static_cast<std::int64_t>(dim));
    x = permute_by(a.builder(), x, order);
    const Dim count = f.shape(x).back();
    if (!count.is_constant() || count == Dim(0)) throw Exception(Code::unsupported, "quantile of this size");
    size = count.constant();
    Shape line(f.rank(x), Dim(1));
    if (!one) line.back() = f.shape(q)[0];
    q = reshape_to(a.builder(), q, line);
  }
};

/// Ranks, where a quantile out of range is given one: reading there fails.
V checked_ranks(ForeignArguments& a, const Quantile& p, V ranks) {
  Formula f(a);
  const V inside = f.two("logical_and", f.two("ge", p.q, f.number(0)), f.two("le", p.q, f.number(1)));
  return f.where(inside, ranks, f.number(-1));
}

/// The ranks of the quantiles among the sorted elements: fractions, computed in the operand's dtype as torch does. A lane with nan ends
/// in nan, which stands last, unless nan is left out.
V ranks_of(ForeignArguments& a, const Quantile& p, V sorted, bool ignore_nan) {
  Formula f(a);
  const std::vector<Dim> last{Dim(static_cast<std::int64_t>(f.rank(sorted)) - 1)};
  const V nans = f.one("isnan", sorted);
  const double top = static_cast<double>(p.size - 1);
  if (!ignore_nan) return f.where(a.one("any", {nans}, {{"dim", last}, {"keepdim", true}}), f.number(top), f.mul(p.q, f.number(top)));
  const V count = a.one("sum", {f.one("logical_not", nans)}, {{"dim", last}, {"dtype", f.dtype(p.x)}, {"keepdim", true}});
  return f.at_least(f.mul(p.q, f.sub(count, f.number(1))), 0);
}

/// The elements at the ranks, or between the neighbours of a rank.
V elements_at(ForeignArguments& a, V sorted, V ranks, const std::string& mode) {
  Formula f(a);
  Shape shape = f.shape(sorted);
  shape.back() = f.shape(ranks).back();
  const Dim last(static_cast<std::int64_t>(shape.size()) - 1);
  const auto element = [&](V place) { return a.one("gather", {sorted, expand_to(a.builder(), f.cast(place, DType::i64), shape)}, {{"dim", last}}); };
  if (mode == "nearest") return element(f.one("round", ranks));
  if (mode == "higher") return element(f.one("ceil", ranks));
  const V low = f.one("floor", ranks), below = element(low);
  if (mode == "lower") return below;
  const V weight = mode == "midpoint" ? f.filled(0.5, f.dtype(sorted), {}) : f.sub(ranks, low);
  return a.one("lerp", {below, element(f.one("ceil", ranks)), weight});
}

Adapt quantile(bool ignore_nan) {
  return [ignore_nan](ForeignArguments& a) -> Values {
    Formula f(a);
    const Quantile p(a);
    const std::size_t rank = f.rank(p.x);
    const V sorted = a.call("sort", {p.x}, {{"descending", false}, {"dim", Dim(static_cast<std::int64_t>(rank) - 1)}})[0];
    const V ranks = ranks_of(a, p, sorted, ignore_nan);
    const V found = elements_at(a, sorted, a.is_tensor("q") ? checked_ranks(a, p, ranks) : ranks, p.mode);
    std::vector<std::int64_t> front{static_cast<std::int64_t>(rank) - 1};  // the quantiles come first
    for (std::size_t d = 0; d + 1 < rank; ++d) front.push_back(static_cast<std::int64_t>(d));
    const V y = permute_by(a.builder(), found, front);
    Shape result = p.result(a.flag("keepdim"));
    if (!p.one) result.insert(result.begin(), Dim(f.shape(p.q).back()));
    return {reshape_to(a.builder(), y, result)};
  };
}

// ---- norms with their statistics

struct Moments {
  V mean, variance, distance;
};

Moments moments(ForeignArguments& a, V x, std::vector<Dim> dims) {
  Formula f(a);
  const ir::Attributes over{{"dim", std::move(dims)}, {"dtype", f.dtype(x)}, {"keepdim", true}};
  const V mean = a.one("mean", {x}, over), distance = f.sub(x, mean);
  return {mean, a.one("mean", {f.mul(distance, distance)}, over), distance};
}

void require_native(ForeignArguments& a, V x) {
  const DType t = a.type(x).dtype;
  if (!is_float(t) || is_reduced_float(t) || ir::product(a.type(x).shape) == Dim(0)) throw Exception(Code::unsupported, "a norm with statistics of these operands");
}

V with_affine(ForeignArguments& a, V y, const Shape& shape) {
  Formula f(a);
  if (a.given("weight")) y = f.mul(y, reshape_to(a.builder(), a.value("weight"), shape));
  if (a.given("bias")) y = f.add(y, reshape_to(a.builder(), a.value("bias"), shape));
  return y;
}

V inverse_deviation(ForeignArguments& a, V variance) {
  Formula f(a);
  return f.one("rsqrt", f.add(variance, f.number(a.number("eps", 1e-5))));
}

/// The result, the mean and 1 / deviation of each sample.
Values native_layer_norm(ForeignArguments& a) {
  Formula f(a);
  const V x = a.value("input");
  require_native(a, x);
  const auto shape = a.integers("normalized_shape");
  std::vector<Dim> dims;
  TENON_USER_CHECK(!shape.empty() && shape.size() <= f.rank(x), "normalized_shape has {} dimensions, the input {}", shape.size(), f.rank(x));
  for (std::size_t d = f.rank(x) - shape.size(); d < f.rank(x); ++d) dims.emplace_back(static_cast<std::int64_t>(d));
  const Moments m = moments(a, x, dims);
  const V inverse = inverse_deviation(a, m.variance);
  a.container = Container::tuple;
  ir::ValueId y = with_affine(a, f.mul(m.distance, inverse), shape);
  if (!a.given("bias")) y = f.add(y, f.number(0));  // ATen adds a bias of zeros: -0 becomes 0
  const auto constant = [&](V v) { return a.one("detach", {v}); };  // torch differentiates by the result alone
  return {y, constant(m.mean), constant(inverse)};
}

Shape channels_of(ForeignArguments& a, V x) {
  Shape shape(a.type(x).rank() - 1, Dim(1));
  shape[0] = a.type(x).shape[1];
  return shape;
}

Values native_group_norm(ForeignArguments& a) {
  Formula f(a);
  const V x = a.value("input");
  require_native(a, x);
  const Shape shape = f.shape(x);
  TENON_USER_CHECK(shape.size() >= 2, "native_group_norm takes at least 2 dimensions, not {}", shape.size());
  const Dim n = a.integer("N"), groups = a.integer("group");
  const V grouped = reshape_to(a.builder(), x, {n, groups, floor_div(ir::product(shape), n * groups)});
  const Moments m = moments(a, grouped, {Dim(2)});
  const V inverse = inverse_deviation(a, m.variance);
  const V y = with_affine(a, reshape_to(a.builder(), f.mul(m.distance, inverse), shape), channels_of(a, x));
  a.container = Container::tuple;
  return {y, reshape_to(a.builder(), m.mean, {n, groups}), reshape_to(a.builder(), inverse, {n, groups})};
}

/// Every sample and channel by itself; of half floats in float32. The running statistics take the mean of what the samples of a batch say.
Values instance_norm(ForeignArguments& a) {
  Formula f(a);
  const DType given_type = f.dtype(a.value("input"));
  const bool keeps_statistics = a.given("running_mean") || a.given("running_var");
  const V x = is_reduced_float(given_type) && !keeps_statistics ? f.cast(a.value("input"), DType::f32) : a.value("input");
  require_native(a, x);
  TENON_USER_CHECK(f.rank(x) >= 2, "instance_norm takes at least 2 dimensions");
  const bool own = a.flag("use_input_stats", true);
  const Shape channels = channels_of(a, x);
  if (!own) {
    const V distance = f.sub(x, reshape_to(a.builder(), a.value("running_mean"), channels));
    const V inverse = reshape_to(a.builder(), inverse_deviation(a, a.value("running_var")), channels);
    return {with_affine(a, f.mul(distance, inverse), channels)};
  }
  if (f.rank(x) == 2) throw Exception(Code::unsupported, "instance_norm without spatial dimensions");
  const MeanAndVariance m = moments_of_groups(a.builder(), x, f.shape(x)[1]);
  const auto over_batch = [&](V v) {
    return f.cast(a.one("mean", {v}, {{"dim", std::vector<Dim>{Dim(0)}}, {"dtype", f.dtype(v)}, {"keepdim", true}}), f.dtype(x));
  };
  if (keeps_statistics) {
    const Dim count = ir::product(std::span(f.shape(x)).subspan(2));
    update_running_statistics(a, {over_batch(m.mean), over_batch(m.variance), count}, true);
  }
  const auto given = [&](const char* name) { return a.given(name) ? std::optional(f.cast(a.value(name), f.dtype(x))) : std::nullopt; };
  return {f.cast(normalise_groups(a.builder(), x, m, a.number("eps", 1e-5), given("weight"), given("bias")), given_type)};
}

// ---- covariance, distances, areas

Values dist(ForeignArguments& a) {
  Formula f(a);
  const V d = f.sub(a.value("self"), a.value("other"));
  if (!is_float(f.dtype(d))) throw Exception(Code::unsupported, "dist of integers");
  return {a.one("linalg_vector_norm", {d}, {{"dim", std::vector<Dim>{}}, {"keepdim", false}, {"ord", a.number("p", 2)}})};
}

/// Covariance of the rows of a matrix without weights: torch checks the values of those.
V covariance(ForeignArguments& a, std::int64_t correction) {
  Formula f(a);
  V x = a.value("self");
  if (f.rank(x) > 2) throw Exception(Code::invalid_argument, "cov(): expected input to have two or fewer dimensions");
  if (a.type(x).dtype == DType::b8) throw Exception(Code::invalid_argument, "cov(): bool dtype is not supported for input");
  if (f.rank(x) < 2) x = reshape_to(a.builder(), x, {Dim(1), ir::product(f.shape(x))});
  const Dim count = f.shape(x)[1];
  if (!count.is_constant() || count.constant() <= correction) throw Exception(Code::unsupported, "cov of so few observations");  // torch warns
  if (!is_float(f.dtype(x))) x = f.cast(x, a.default_float());
  const V mean = a.one("mean", {x}, {{"dim", std::vector<Dim>{Dim(1)}}, {"dtype", f.dtype(x)}, {"keepdim", true}});
  const V away = f.sub(x, mean);
  return f.div(a.one("mm", {away, permute_by(a.builder(), away, {1, 0})}), f.number(static_cast<double>(count.constant() - correction)));
}

V without_one_row(ForeignArguments& a, V c) { return a.type(c).shape[0] == Dim(1) ? reshape_to(a.builder(), c, {}) : c; }

Values cov(ForeignArguments& a) {
  if (a.given("fweights") || a.given("aweights")) throw Exception(Code::unsupported, "cov with weights");
  return {without_one_row(a, covariance(a, a.constant("correction")))};
}

Values corrcoef(ForeignArguments& a) {
  Formula f(a);
  const V c = covariance(a, 1);
  const Dim rows = f.shape(c)[0];
  if (rows == Dim(1)) return {f.div(without_one_row(a, c), without_one_row(a, c))};
  const V deviation = f.one("sqrt", a.one("diagonal", {c}, {{"dim1", Dim(0)}, {"dim2", Dim(1)}, {"offset", Dim(0)}}));
  const V scaled = f.div(f.div(c, reshape_to(a.builder(), deviation, {rows, Dim(1)})), reshape_to(a.builder(), deviation, {Dim(1), rows}));
  return {a.one("clamp", {scaled, f.number(-1), f.number(1)})};
}

/// The trapezoid rule along a dimension: all of it, or running.
Adapt trapezoid(bool running) {
  return [running](ForeignArguments& a) -> Values {
    Formula f(a);
    const V y = a.value("y");
    const bool whole = is_int(f.dtype(y));
    if ((!is_float(f.dtype(y)) && !whole) || f.rank(y) == 0) throw Exception(Code::unsupported, "trapezoid of these operands");
    if (a.given("x") && a.is_tensor("x") == false) throw Exception(Code::unsupported, "trapezoid at a number");
    const auto dim = static_cast<std::size_t>(infer::wrap_dim(a.integer("dim", Dim(-1)).constant(), f.rank(y)));
    const auto pairs = [&](V v, std::size_t d) {
      return std::pair{slice_of(a.builder(), v, d, {Dim(1), {}, {}}), slice_of(a.builder(), v, d, {{}, Dim(-1), {}})};
    };
    const auto [later, earlier] = pairs(y, dim);
    V areas = f.add(later, earlier);
    if (a.given("x")) {
      V x = a.value("x");
      if (whole && f.dtype(x) != f.dtype(y)) throw Exception(Code::unsupported, "trapezoid of integers at places of another dtype");
      Shape shape = f.shape(x);
      if (shape.size() == 1) {
        shape.assign(f.rank(y), Dim(1));
        shape[dim] = f.shape(x)[0];
      }
      if (shape.size() != f.rank(y)) throw Exception(Code::unsupported, "trapezoid at places of another rank");
      x = reshape_to(a.builder(), x, shape);
      const auto [right, left] = pairs(x, dim);
      areas = f.mul(areas, f.sub(right, left));
    }
    const double step = (a.given("dx") ? a.number("dx", 1) : 1) / 2;
    const Dim at(static_cast<std::int64_t>(dim));
    if (whole && !running && !a.given("x") && !(f.shape(y)[dim] == Dim(0))) {  // the ends alone are added in the integers' own dtype
      const V ends = f.add(select_of(a.builder(), y, dim, Dim(0)), select_of(a.builder(), y, dim, Dim(-1)));
      return {f.mul(f.sub(f.sum(y, {at}), f.mul(f.cast(ends, a.default_float()), f.number(0.5))), f.number(2 * step))};
    }
    if (running && whole) areas = f.cast(areas, a.default_float());
    if (running && !a.given("x")) return {a.one("cumsum", {f.mul(areas, f.number(step))}, {{"dim", at}, {"dtype", f.dtype(areas)}})};  // as torch does, which an infinite step shows
    V total = running ? a.one("cumsum", {areas}, {{"dim", at}, {"dtype", f.dtype(areas)}}) : f.sum(areas, {at});
    if (whole) total = f.cast(total, a.default_float());
    return {f.mul(total, f.number(step))};
  };
}

}  // namespace

std::vector<Alias> statistics_names() {
  return torch_names("cov", "(self, *, correction=1, fweights=None, aweights=None)", cov) + torch_names("corrcoef", "(self)", corrcoef) +
         torch_names("quantile", "(self, q, dim=None, keepdim=False, *, interpolation='linear', out=None)", quantile(false)) +
         torch_names("nanquantile", "(self, q, dim=None, keepdim=False, *, interpolation='linear', out=None)", quantile(true)) +
         names({"torch.native_layer_norm"}, "(input, normalized_shape, weight=None, bias=None, eps)", native_layer_norm) +
         names({"torch.native_group_norm"}, "(input, weight=None, bias=None, N, C, HxW, group, eps)", native_group_norm) +
         names({"torch.instance_norm"}, "(input, weight=None, bias=None, running_mean=None, running_var=None, use_input_stats, momentum, eps, cudnn_enabled=False)", instance_norm) +
         torch_names("dist", "(self, other, p=2)", dist) + names({"torch.trapezoid", "torch.trapz"}, "(y, x=None, *, dx=None, dim=-1)", trapezoid(false)) +
         names({"torch.cumulative_trapezoid"}, "(y, x=None, *, dx=None, dim=-1)", trapezoid(true));
}

}  // namespace tenon::ops
