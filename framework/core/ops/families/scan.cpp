// Running sums and products along a dimension, and differences.
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "core/base/row_major.h"
#include "core/ops/families/lanes.h"
#include "core/ops/families/move.h"
#include "core/ops/gradients/gradients.h"
#include "core/ops/reference/element.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::Shape;

DType scan_dtype(const OpQuery& q) { return q.dtype("dtype", is_float(q.type(0).dtype) ? q.type(0).dtype : DType::i64); }

/// log(exp(a) + exp(b)); of equal infinities that infinity.
double log_add_exp(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return NAN;
  const double most = std::max(a, b), least = std::min(a, b);
  return std::isinf(most) && most == least ? most : most + std::log1p(std::exp(least - most));
}

/// Sums and products of integers wrap.
std::int64_t wrapping_sum(std::int64_t a, std::int64_t b) { return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b)); }
std::int64_t wrapping_product(std::int64_t a, std::int64_t b) { return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b)); }

/// Row-major tensors [outer, count, inner], along the dimension in the middle.
template <class K, K (*combine)(K, K), class From, class To>
void scan_row_major(const From* from, To* to, std::int64_t outer, std::int64_t count, std::int64_t inner) {
  using reference::convert_element;
  if (inner == 1) {
    for (; outer > 0; --outer) {
      K total{};
      for (std::int64_t i = 0; i < count; ++i, ++from, ++to) {
        const K next = convert_element<K>(*from);
        total = i > 0 ? combine(total, next) : next;
        *to = convert_element<To>(total);
      }
    }
    return;
  }
  std::vector<K> totals(static_cast<std::size_t>(inner));
  for (; outer > 0; --outer)
    for (std::int64_t i = 0; i < count; ++i, from += inner, to += inner)
      for (std::int64_t j = 0; j < inner; ++j) {
        K& total = totals[static_cast<std::size_t>(j)];
        const K next = convert_element<K>(from[j]);
        total = i > 0 ? combine(total, next) : next;
        to[j] = convert_element<To>(total);
      }
}

/// False where there is no code for the layout or the result's dtype.
template <class K, K (*combine)(K, K)>
bool scan_in_rows(const TensorView& x, const TensorView& out, std::size_t dim) {
  if (x.shape.empty() || !is_row_major(x.shape, x.strides) || !is_row_major(out.shape, out.strides)) return false;
  const auto product = [&](std::size_t first, std::size_t last) {
    return std::accumulate(x.shape.begin() + static_cast<std::ptrdiff_t>(first), x.shape.begin() + static_cast<std::ptrdiff_t>(last), std::int64_t{1}, std::multiplies<>());
  };
  const auto scan_to = [&]<class To>(To) {
    reference::with_type(x.dtype, [&]<class From>(From) {
      scan_row_major<K, combine>(static_cast<const From*>(x.data), static_cast<To*>(out.data), product(0, dim), x.shape[dim], product(dim + 1, x.shape.size()));
    });
    return true;
  };
  if constexpr (std::is_same_v<K, std::int64_t>) return out.dtype == DType::i64 && scan_to(std::int64_t{});
  else return (out.dtype == DType::f64 && scan_to(double{})) || (out.dtype == DType::f32 && scan_to(float{}));
}

/// Element after element, in float64 or int64 whatever the dtype: as exact as a running sum can be, and what ATen does.
template <class K, K (*combine)(K, K)>
void scan_lanes(KernelCall& call) {
  const TensorView& out = call.outputs[0];
  const std::size_t dim = dim_of(call.query);
  if (scan_in_rows<K, combine>(call.inputs[0], out, dim)) return;
  each_lane<K>(call.inputs[0], dim, [&](std::span<const K> lane, std::span<const std::int64_t> at) {
    if (lane.empty()) return;
    K total = lane[0];
    for (std::size_t i = 0; i < lane.size(); ++i) {
      if (i > 0) total = combine(total, lane[i]);
      const std::int64_t target = lane_offset(out, dim, at, static_cast<std::int64_t>(i));
      reference::scatter(std::is_same_v<K, double> ? DType::f64 : DType::i64, &total, out.dtype, out.data, &target, 1);
    }
  });
}

double sum_of(double a, double b) { return a + b; }
double product_of(double a, double b) { return a * b; }

using Kernel = void (*)(KernelCall&);

/// `integers_kernel` is null where only floats have a meaning.
Op scan(std::string name, Kernel floats_kernel, Kernel integers_kernel) {
  Op op;
  const bool floats = !integers_kernel;
  op.traits.layout = ResultLayout::row_major;
  op.schema = "(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor";
  const Adapt adapt = [name](ForeignArguments& a) {
    a.refuse({"out"});
    ir::ValueId x = a.tensor(a.value("self"));
    if (const auto dtype = a.dtype("dtype")) x = a.builder().cast(x, *dtype);
    const DType given = a.type(x).dtype;
    if (a.numpy() && given == DType::u8 && !a.given("dtype"))
      throw Exception(Code::unsupported, "NumPy accumulates uint8 in uint64, which Tenon lacks; give a dtype");
    if (!a.given("dim")) x = reshape_to(a.builder(), x, {Dim(-1)});
    const std::int64_t dim = a.given("dim") ? a.dim("dim", a.type(x).rank()) : 0;
    return a.call(name, {x}, {{"dim", Dim(dim)}, {"dtype", a.dtype("dtype").value_or(is_float(given) ? given : DType::i64)}});
  };
  const Adapt cumulative = [adapt](ForeignArguments& a) {
    a.refuse({"include_initial"});
    if (!a.given("dim") && a.type(a.tensor(a.value("self"))).rank() != 1) throw Exception(Code::unsupported, "a cumulative function without an axis");
    return adapt(a);
  };
  op.aliases = torch_names(name, "(self, dim, *, dtype=None, out=None)", adapt) +
               names({fmt::format("numpy.cumulative_{}", name.substr(3))}, "(x -> self, *, axis -> dim = None, dtype=None, out=None, include_initial=False)", cumulative) +
               names({"numpy." + name}, "(a -> self, axis -> dim = None, dtype=None, out=None)", adapt) +
               names({"numpy.ndarray." + name}, "(self, axis -> dim = None, dtype=None, out=None)", adapt);
  op.name = std::move(name);
  op.infer = [floats](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 1, 1);
    dim_of(q);
    TENON_USER_CHECK(!q.literal(0), "takes a tensor, not a number");
    TENON_USER_CHECK(!floats || is_float(scan_dtype(q)), "takes floats, not {}", name_of(scan_dtype(q)));
    return infer::one(q, scan_dtype(q), q.type(0).shape);
  };
  op.kernel = [=](KernelCall& call) { (is_float(scan_dtype(call.query)) ? floats_kernel : integers_kernel)(call); };
  op.samples = [floats] {
    std::vector<Sample> all;
    for (DType t : floats ? kFloats : std::vector<DType>{DType::f32, DType::f64, DType::f16, DType::i32, DType::b8})
      for (std::int64_t dim : {0, -1})
        all.push_back({.name = fmt::format("{}_{}", name_of(t), dim),
                       .operands = {{.dtype = t, .shape = {7, 5}, .fill = Fill::unit}},
                       .attributes = {{"dim", Dim(dim)}},
                       .tolerance = 4});
    all.push_back({.name = "long", .operands = {{.shape = {300}, .fill = Fill::unit}}, .attributes = {{"dim", Dim(0)}}, .tolerance = 8});
    for (DType t : floats ? kFloats : std::vector<DType>{DType::f32, DType::f64, DType::u8, DType::i64})
      all.push_back({.name = fmt::format("{}_middle", name_of(t)), .operands = {{.dtype = t, .shape = {3, 4, 5}, .fill = Fill::unit}}, .attributes = {{"dim", Dim(1)}}, .tolerance = 4});
    all.push_back({.name = "scalar", .operands = {{.shape = {}}}, .attributes = {{"dim", Dim(0)}}});
    all.push_back({.name = "nothing", .operands = {{.shape = {0, 2}}}, .attributes = {{"dim", Dim(0)}}});
    return all;
  };
  return op;
}

/// x[1:] - x[:-1] along a dimension, n times; of bools: not equal.
Values difference(ForeignArguments& a) {
  a.refuse({"out"});
  ir::ValueId x = a.value("self");
  const auto dim = static_cast<std::size_t>(a.dim("dim", a.type(x).rank()));
  if (a.integer("n", Dim(1)) == Dim(0)) return a.call("clone", {x});
  Values joined;
  for (const char* part : {"prepend", "self", "append"})
    if (a.is_tensor(part)) joined.push_back(a.value(part));
    else a.refuse({part});
  if (joined.size() > 1) x = a.one("cat", joined, {{"dim", Dim(static_cast<std::int64_t>(dim))}});
  for (std::int64_t n = a.integer("n", Dim(1)).constant(); n > 0; --n) {
    const ir::ValueId later = slice_of(a.builder(), x, dim, {Dim(1), {}, {}}), earlier = slice_of(a.builder(), x, dim, {{}, Dim(-1), {}});
    x = a.one(is_bool(a.type(x).dtype) ? "logical_xor" : "sub", {later, earlier});
  }
  return {x};
}

}  // namespace

Family scan_ops() {
  Family ops = {scan("cumsum", scan_lanes<double, sum_of>, scan_lanes<std::int64_t, wrapping_sum>),
                scan("cumprod", scan_lanes<double, product_of>, scan_lanes<std::int64_t, wrapping_product>),
                scan("logcumsumexp", scan_lanes<double, log_add_exp>, nullptr)};
  ops[0].grad = written(gradients::cumsum);
  ops[1].grad = written(gradients::cumprod);
  ops[2].grad = written(gradients::logcumsumexp);
  ops[0].aliases = ops[0].aliases + torch_names("diff", "(self, n=1, dim=-1, prepend=None, append=None, *, out=None)", difference) +
                   names({"numpy.diff"}, "(a -> self, n=1, axis -> dim = -1, prepend=None, append=None)", difference);
  return ops;
}

}  // namespace tenon::ops
