// Running sums and products along a dimension, and differences.
#include <algorithm>
#include <cmath>

#include "core/ops/gradients/gradients.h"
#include "core/ops/lanes/lane_runs.h"
#include "core/ops/lanes/lanes.h"
#include "core/ops/notation/move.h"
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

struct Sum {
  static double of(double a, double b) { return a + b; }
  static std::int64_t of(std::int64_t a, std::int64_t b) { return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b)); }  // wraps
};
struct Product {
  static double of(double a, double b) { return a * b; }
  static std::int64_t of(std::int64_t a, std::int64_t b) { return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b)); }
};
struct LogSum {
  static double of(double a, double b) { return log_add_exp(a, b); }
};

template <class K, class Combine, class From, class To>
void scan_typed(const TensorView& x, const TensorView& out, std::size_t dim) {
  using reference::convert_element;
  const std::int64_t count = lane_size(x, dim), from_step = lane_step(x, dim), to_step = lane_step(out, dim);
  alignas(64) std::array<K, kNeighbours> totals;
  each_lane_run<2>({&x, &out}, dim, [&](const LaneRun<2>& run) {
    const auto neighbours = [&](std::array<std::int64_t, 2> first, std::int64_t lanes) {
      for_machine([=, total = totals.data(), from = static_cast<const From*>(x.data) + first[0], to = static_cast<To*>(out.data) + first[1]]() [[gnu::always_inline]] {
        const From* __restrict source = from;
        To* __restrict target = to;
        for (std::int64_t j = 0; j < lanes; ++j) target[j] = convert_element<To>(total[j] = convert_element<K>(source[j]));
        for (std::int64_t i = 1; i < count; ++i) {
          source += from_step, target += to_step;
          for (std::int64_t j = 0; j < lanes; ++j) target[j] = convert_element<To>(total[j] = Combine::of(total[j], convert_element<K>(source[j])));
        }
      });
    };
    const auto apart = [&](std::array<std::int64_t, 2> first, auto width) {
      const From* source = static_cast<const From*>(x.data) + first[0];
      To* target = static_cast<To*>(out.data) + first[1];
      std::array<K, width> total{};
      for (std::int64_t i = 0; i < count; ++i, source += from_step, target += to_step)
        unrolled(width, [&](std::size_t lane) [[gnu::always_inline]] {
          const auto j = static_cast<std::int64_t>(lane);
          const K next = convert_element<K>(source[j * run.across[0]]);
          total[lane] = i > 0 ? Combine::of(total[lane], next) : next;
          target[j * run.across[1]] = convert_element<To>(total[lane]);
        });
    };
    each_block(run, neighbours, apart);
  });
}

/// False where there is no code for the dtypes.
template <class K, class Combine>
bool scan_in_vectors(const TensorView& x, const TensorView& out, std::size_t dim) {
  constexpr bool kFloats = std::is_same_v<K, double>;
  if (is_float(x.dtype) != kFloats || is_complex(x.dtype) || (x.dtype != out.dtype && (kFloats || out.dtype != DType::i64))) return false;
  reference::with_type(x.dtype, [&]<class T>(T) {
    constexpr bool kIsFloat = std::is_floating_point_v<T> || std::is_same_v<T, reference::Half> || std::is_same_v<T, reference::BFloat16>;
    if constexpr (kIsFloat == kFloats && !reference::kIsComplex<T>) {
      if (x.dtype == out.dtype) return scan_typed<K, Combine, T, T>(x, out, dim);
      if constexpr (!kFloats) scan_typed<K, Combine, T, std::int64_t>(x, out, dim);
    }
  });
  return true;
}

/// Element after element, in float64 or int64 whatever the dtype: as exact as a running sum can be, and what ATen does.
template <class K, class Combine>
void scan_lanes(KernelCall& call) {
  const TensorView& out = call.outputs[0];
  const std::size_t dim = dim_of(call.query);
  if (scan_in_vectors<K, Combine>(call.inputs[0], out, dim)) return;
  each_lane<K>(call.inputs[0], dim, [&](std::span<const K> lane, std::span<const std::int64_t> at) {
    if (lane.empty()) return;
    K total = lane[0];
    for (std::size_t i = 0; i < lane.size(); ++i) {
      if (i > 0) total = Combine::of(total, lane[i]);
      const std::int64_t target = lane_offset(out, dim, at, static_cast<std::int64_t>(i));
      reference::scatter(std::is_same_v<K, double> ? DType::f64 : DType::i64, &total, out.dtype, out.data, &target, 1);
    }
  });
}

using Kernel = void (*)(KernelCall&);

/// `integers_kernel` is null where only floats have a meaning.
Op scan(std::string name, Kernel floats_kernel, Kernel integers_kernel) {
  Op op;
  const bool floats = !integers_kernel;
  op.traits = {.by_lanes = true, .layout = ResultLayout::row_major};
  op.schema = "(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor";
  const Adapt adapt = [name](ForeignArguments& a) {
    a.refuse({"out"});
    ir::ValueId x = a.tensor(a.value("self"));
    if (const auto dtype = a.dtype("dtype")) x = a.builder().cast(x, *dtype);
    const DType given = a.type(x).dtype;
    if (a.numpy() && given == DType::u8 && !a.given("dtype"))
      throw Exception(Code::unsupported, "NumPy accumulates uint8 in uint64, which Tenon lacks; give a dtype");
    // NumPy sums and multiplies in the dtype itself: what overflows on the way stays infinite, and is warned of.
    if (a.numpy() && is_float(given)) throw Exception(Code::unsupported, "an accumulation of floats by NumPy");
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
  Family ops = {scan("cumsum", scan_lanes<double, Sum>, scan_lanes<std::int64_t, Sum>),
                scan("cumprod", scan_lanes<double, Product>, scan_lanes<std::int64_t, Product>),
                scan("logcumsumexp", scan_lanes<double, LogSum>, nullptr)};
  ops[0].grad = written(gradients::cumsum);
  ops[1].grad = written(gradients::cumprod);
  ops[2].grad = written(gradients::logcumsumexp);
  ops[0].aliases = ops[0].aliases + torch_names("diff", "(self, n=1, dim=-1, prepend=None, append=None, *, out=None)", difference) +
                   names({"numpy.diff"}, "(a -> self, n=1, axis -> dim = -1, prepend=None, append=None)", difference);
  return ops;
}

}  // namespace tenon::ops
