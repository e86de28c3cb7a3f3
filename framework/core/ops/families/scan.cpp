// Running sums and products along a dimension, and differences.
#include <algorithm>
#include <cmath>

#include "core/ops/gradients/gradients.h"
#include "core/ops/lanes/lane_runs.h"
#include "core/ops/lanes/lanes.h"
#include "core/ops/notation/move.h"
#include "core/ops/notation/reduce.h"
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

// ---- by loop nests: within blocks, then with what the blocks before give, which is a scan itself

/// Elements of a block: so many loads make one element.
constexpr std::int64_t kBlock = 8;

DType total_dtype(const OpQuery& q) { return compute_type(q.type(0).dtype); }
Scalar combined(Scalars& s, const OpQuery& q, Scalar a, Scalar b) { return s.binary(q.flag("product") ? Primitive::mul : Primitive::add, a, b); }

/// Each element with those before it in its block.
LoopBody scan_blocks_loop(const OpQuery& q) {
  const std::size_t dim = dim_of(q), rank = q.type(0).rank();
  const DType dtype = total_dtype(q);
  const std::int64_t identity = q.flag("product") ? 1 : 0;
  const Dim size = q.type(0).shape[dim];
  const bool is_whole = size.is_constant() && (size.constant() % kBlock == 0 || size.constant() < kBlock);
  Scalars s;
  IndexMath math(s);
  std::vector<Scalar> at = math.loops(rank);
  const Scalar within = math.mod(at[dim], Dim(kBlock)), before = s.loop_index(rank);
  at[dim] = s.add(math.mul(math.floor_div(at[dim], Dim(kBlock)), Dim(kBlock)), before);
  if (!is_whole) at[dim] = s.minimum(at[dim], math.of(size - Dim(1)));  // so that what is loaded is the same for all of a block
  s.result(s.select(s.le(before, within), s.load(0, q.type(0).dtype, at), s.constant(dtype, identity)));
  LoopBody body{.extents = q.type(0).shape, .reduced = 1, .element = s.take(), .reducer = simple_reducer(dtype, static_cast<double>(identity), q.flag("product") ? Primitive::mul : Primitive::add)};
  body.extents.push_back(min(Dim(kBlock), size));
  return body;
}

/// Each element of the first operand with the total of the blocks before its own, which the second operand has.
LoopBody scan_carried_loop(const OpQuery& q) {
  const std::size_t dim = dim_of(q);
  return elementwise(q.type(0).shape, [&](Scalars& s) {
    IndexMath math(s);
    std::vector<Scalar> at = math.loops(q.type(0).rank());
    const Scalar own = s.load(0, q.type(0).dtype, at), block = math.floor_div(at[dim], Dim(kBlock));
    at[dim] = math.add(block, Dim(-1));
    const Scalar nothing = s.constant(total_dtype(q), std::int64_t{q.flag("product")});
    return combined(s, q, s.load_if(s.lt(math.of(Dim(0)), block), 1, q.type(1).dtype, at, nothing), own);
  });
}

/// The second operand has a total for each block that another one follows.
void require_totals(const OpQuery& q, std::size_t dim) {
  const Shape &shape = q.type(0).shape, &totals = q.type(1).shape;
  TENON_USER_CHECK(shape[dim].is_constant(), "a scan over a size that is not known");
  for (std::size_t d = 0; d < shape.size(); ++d)
    infer::require_equal(q.graph(), totals[d], d == dim ? Dim(std::max<std::int64_t>(shape[d].constant() - 1, 0) / kBlock) : shape[d], "sizes of the totals");
}

Op part_of_scan(std::string name, std::size_t operands, std::function<LoopBody(const OpQuery&)> loop, std::vector<Sample> samples) {
  Op op;
  op.name = std::move(name);
  op.schema = fmt::format("(Tensor self, {}int dim, bool product=False) -> Tensor", operands == 2 ? "Tensor before, " : "");
  op.no_grad_reason = "a backend makes it";
  op.infer = [operands](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, operands, operands);
    TENON_USER_CHECK(!q.literal(0) && q.type(0).rank() > 0, "takes a tensor with dimensions");
    TENON_USER_CHECK(!is_bool(q.type(0).dtype) && total_dtype(q) == q.type(0).dtype, "{} holds no totals", name_of(q.type(0).dtype));
    TENON_USER_CHECK(operands == 1 || (!q.literal(1) && q.type(1).rank() == q.type(0).rank() && q.type(1).dtype == q.type(0).dtype), "the totals are of the same rank and dtype");
    const std::size_t dim = dim_of(q);
    if (operands == 2) require_totals(q, dim);
    return infer::one(q, q.type(0).dtype, q.type(0).shape);
  };
  op.loop = std::move(loop);
  op.samples = [samples = std::move(samples)] { return samples; };
  return op;
}

Op scan_blocks_op() {
  std::vector<Sample> all;
  for (const DType t : {DType::f32, DType::f64, DType::i64})
    for (const bool product : {false, true})
      all.push_back({.name = std::string(name_of(t)), .operands = {{.dtype = t, .shape = {3, 21}, .fill = Fill::unit}}, .attributes = {{"dim", Dim(1)}, {"product", product}}, .tolerance = 4});
  all.push_back({.name = "columns", .operands = {{.shape = {21, 6}}}, .attributes = {{"dim", Dim(0)}}, .tolerance = 4});
  all.push_back({.name = "short", .operands = {{.shape = {4, 3}}}, .attributes = {{"dim", Dim(1)}}, .tolerance = 4});
  return part_of_scan("scan_blocks", 1, scan_blocks_loop, std::move(all));
}

Op scan_carried_op() {
  std::vector<Sample> all;
  for (const bool product : {false, true})
    all.push_back({.name = "rows", .operands = {{.shape = {3, 21}}, {.shape = {3, 2}}}, .attributes = {{"dim", Dim(1)}, {"product", product}}});
  all.push_back({.name = "columns", .operands = {{.dtype = DType::i64, .shape = {21, 5}}, {.dtype = DType::i64, .shape = {2, 5}}}, .attributes = {{"dim", Dim(0)}}});
  return part_of_scan("scan_carried", 2, scan_carried_loop, std::move(all));
}

ir::ValueId scanned(NodeBuilder& b, ir::ValueId x, std::size_t dim, bool product) {
  const ir::Attributes how{{"dim", Dim(static_cast<std::int64_t>(dim))}, {"product", product}};
  const std::int64_t size = b.graph().type(x).shape[dim].constant();
  if (size == 1) return x;
  const ir::ValueId within = b.one("scan_blocks", {x}, how);
  if (size <= kBlock) return within;
  const std::int64_t blocks = (size - 1) / kBlock;  // that another one follows
  const ir::ValueId totals = slice_of(b, within, dim, {Dim(kBlock - 1), Dim(blocks * kBlock), Dim(kBlock)});
  return b.one("scan_carried", {within, scanned(b, totals, dim, product)}, how);
}

/// In torch's accumulation type for the device: the compute type of the result's.
Values scan_in_loops(NodeBuilder& b, const OpQuery& q, bool product) {
  const ir::Type type = q.type(0);
  const DType result = scan_dtype(q);
  const std::size_t dim = dim_of(q);
  const ir::ValueId x = b.cast(q.operands()[0], compute_type(result));
  if (type.rank() == 0) return {b.cast(x, result)};
  if (is_bool(result) || !type.shape[dim].is_constant() || type.shape[dim].constant() == 0) throw Exception(Code::unsupported, "a scan over a size that is not known, or of bools");
  return {b.cast(scanned(b, x, dim, product), result)};
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

/// The sum over the later results, each times its gradient, over the element. In a row with a 0 that quotient holds before the first, where the results behind
/// add nothing; the first one gets the sum of the products without it, and what follows gets 0. (ATen: cumprod_backward.)
Values decompose_cumprod_gradient(NodeBuilder& b, const OpQuery& q) {
  const ir::ValueId x = q.operands()[0], given = q.operands()[1];
  const DType t = q.type(0).dtype;
  const std::vector<Dim> dims{Dim(static_cast<std::int64_t>(dim_of(q)))};
  const auto scanned = [&](std::string_view op, ir::ValueId v, DType as) { return b.one(op, {v}, {{"dim", dims[0]}, {"dtype", as}}); };
  const auto flipped = [&](ir::ValueId v) { return b.one("flip", {v}, {{"dims", dims}}); };
  const ir::ValueId is_zero = b.one("eq", {x, b.literal(0.0)});
  const ir::ValueId zeros = scanned("cumsum", is_zero, DType::i32), none = b.one("eq", {zeros, b.literal(Dim(0))});
  const ir::ValueId first = b.one("logical_and", {is_zero, b.one("eq", {zeros, b.literal(Dim(1))})});
  const ir::ValueId before = b.one("div", {flipped(scanned("cumsum", flipped(b.one("mul", {given, scanned("cumprod", x, t)})), t)), x});
  const ir::ValueId without = scanned("cumprod", b.one("where", {first, b.literal(1.0), x}), t);
  const ir::ValueId behind = b.one("where", {none, b.literal(0.0), b.one("mul", {given, without})});
  const ir::ValueId of_first = b.one("sum", {behind}, {{"dim", dims}, {"dtype", t}, {"keepdim", true}});
  return {b.one("where", {none, before, b.one("where", {first, of_first, b.literal(0.0)})})};
}

/// The gradient of the elements of a cumprod by that of its results.
Op cumprod_gradient_op() {
  Op op;
  op.name = "cumprod_gradient";
  op.schema = "(Tensor input, Tensor gradient, *, int dim) -> Tensor";
  op.aliases = names({"tenon._by_torch.cumprod_gradient"}, "(input, gradient, dim)");
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 2, 2);
    dim_of(q);
    for (std::size_t k = 0; k < 2; ++k) {
      TENON_USER_CHECK(!q.literal(k) && is_float(q.type(k).dtype) && q.type(k).dtype == q.type(0).dtype, "takes float tensors of one dtype");
      TENON_USER_CHECK(q.type(k).rank() > 0 && q.type(k).rank() == q.type(0).rank(), "takes tensors of the same dimensions, at least one");
      for (std::size_t d = 0; d < q.type(0).rank(); ++d) infer::require_equal(q.graph(), q.type(k).shape[d], q.type(0).shape[d], "sizes of the operands");
    }
    return infer::one(q, q.type(0).dtype, q.type(0).shape);
  };
  op.traits.is_inferred_whole = true;
  op.decompose = decompose_cumprod_gradient;
  op.grad = written(gradients::cumprod_gradient);
  op.samples = [] {
    std::vector<Sample> all;
    for (DType t : {DType::f32, DType::f64, DType::f16})
      for (std::int64_t dim : {0, -1}) {
        const SampleOperand operand{.dtype = t, .shape = {7, 5}, .fill = Fill::unit};
        all.push_back({.name = fmt::format("{}_{}", name_of(t), dim), .operands = {operand, operand}, .attributes = {{"dim", Dim(dim)}}, .tolerance = 16});
      }
    return all;
  };
  return op;
}

}  // namespace

Family scan_ops() {
  Family ops = {scan("cumsum", scan_lanes<double, Sum>, scan_lanes<std::int64_t, Sum>),
                scan("cumprod", scan_lanes<double, Product>, scan_lanes<std::int64_t, Product>),
                scan("logcumsumexp", scan_lanes<double, LogSum>, nullptr)};
  for (const bool product : {false, true}) ops[product ? 1 : 0].in_loops = [product](NodeBuilder& b, const OpQuery& q) { return scan_in_loops(b, q, product); };
  ops.push_back(scan_blocks_op()), ops.push_back(scan_carried_op()), ops.push_back(cumprod_gradient_op());
  ops[0].grad = written(gradients::cumsum);
  ops[1].grad = written(gradients::cumprod);
  ops[2].grad = written(gradients::logcumsumexp);
  ops[0].aliases = ops[0].aliases + torch_names("diff", "(self, n=1, dim=-1, prepend=None, append=None, *, out=None)", difference) +
                   names({"numpy.diff"}, "(a -> self, n=1, axis -> dim = -1, prepend=None, append=None)", difference);
  return ops;
}

}  // namespace tenon::ops
