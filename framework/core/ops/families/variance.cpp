// Variance and standard deviation, with or without the mean.
#include <algorithm>
#include <cmath>

#include "core/ops/gradients/gradients.h"
#include "core/ops/notation/reduce.h"
#include "core/ops/size_questions.h"

namespace tenon::ops {
namespace {

using ir::Dim;

const std::vector<DType> kFloats{DType::f16, DType::bf16, DType::f64, DType::f32};

/// Two passes, in float64: the squared distances from the mean. Equal elements have none, as by Welford's sums, with which torch computes: the mean of
/// smaller floats is exact then, and where that of float64 is not, all distances are the same few last bits, and what they amount to is taken off.
ir::ValueId variance(NodeBuilder& b, const OpQuery& q) {
  const ReductionShape shape(q);
  std::vector<Dim> dims;
  for (std::size_t d : shape.reduced) dims.emplace_back(static_cast<std::int64_t>(d));
  const ir::ValueId x = b.cast(q.operands()[0], DType::f64);
  const ir::ValueId distance = b.one("sub", {x, b.one("mean", {x}, with_dtype({{"dim", dims}, {"keepdim", true}}, DType::f64))});
  const auto sum = [&](ir::ValueId v) { return b.one("sum", {v}, with_dtype({{"dim", dims}, {"keepdim", q.flag("keepdim")}}, DType::f64)); };
  ir::ValueId squares = sum(b.one("mul", {distance, distance}));
  if (q.type(0).dtype == DType::f64) {
    const ir::ValueId off = sum(distance);
    squares = b.one("sub", {squares, b.one("div", {b.one("mul", {off, off}), b.literal(shape.count)})});
    squares = b.one("maximum", {squares, b.literal(0.0)});
  }
  return b.one("div", {squares, b.literal(degrees_of_freedom(q))});
}

Op variance_op(std::string name, bool root) {
  Op op;
  op.name = name;
  op.traits.layout = ResultLayout::row_major;
  op.schema = "(Tensor self, int[]? dim=None, *, Scalar correction=1, bool keepdim=False) -> Tensor";
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 1, 1);
    TENON_USER_CHECK(is_float(q.type(0).dtype), "takes float tensors, not {}", name_of(q.type(0).dtype));
    degrees_of_freedom(q);
    return infer::one(q, q.type(0).dtype, ReductionShape(q).result);
  };
  op.traits.is_inferred_whole = true;
  op.decompose = [root](NodeBuilder& b, const OpQuery& q) -> Values {
    const DType result = q.type(0).dtype;
    ir::ValueId v = variance(b, q);
    if (root) v = b.one("sqrt", {v});
    return {b.cast(v, result)};
  };
  op.grad = written(root ? gradients::standard_deviation : gradients::var);
  op.samples = [] {
    auto all = reduction_samples(kFloats, Fill::normal, {{"correction", Dim(1)}});
    for (Sample& s : reduction_samples({DType::f32}, Fill::normal, {{"correction", Dim(0)}})) all.push_back(std::move(s));
    return all;
  };
  return op;
}

struct VarianceArguments {
  ir::ValueId x;
  ir::Attributes shape;
  ir::Attribute correction;
};

/// Both libraries warn where no degree of freedom is left.
void refuse_too_few(ForeignArguments& a, const VarianceArguments& v) {
  const Dim* whole = std::get_if<Dim>(&v.correction);
  const double* number = std::get_if<double>(&v.correction);
  if (number && !(std::abs(*number) < 1e9)) throw Exception(Code::unsupported, "a variance with such a correction");
  const Dim correction = whole ? *whole : Dim(static_cast<std::int64_t>(std::floor(number ? *number : 0)));
  if (!infer::may_be_positive_or_0(a.graph(), elements_of_result(a, v.x) - correction - Dim(1)))
    throw Exception(Code::unsupported, "a variance without degrees of freedom, which is warned of");
}

/// torch: (dim, unbiased, keepdim), (unbiased) or (dim, *, correction); NumPy: ddof and dtype.
VarianceArguments variance_arguments(ForeignArguments& a) {
  a.refuse({"where", "out", "mean"});
  VarianceArguments v{a.tensor(a.value("self")), {}, Dim(a.numpy() ? 0 : 1)};
  const DType t = a.type(v.x).dtype;
  if (a.numpy()) {
    v.x = a.builder().cast(v.x, a.dtype("dtype").value_or(is_float(t) ? t : DType::f64));
    if (a.given("ddof")) v.correction = a["ddof"].as<double>() ? ir::Attribute(*a["ddof"].as<double>()) : ir::Attribute(a.integer("ddof"));
  }
  if (a.given("unbiased")) v.correction = Dim(a.flag("unbiased") ? 1 : 0);
  if (a.given("correction"))
    v.correction = a["correction"].as<double>() ? ir::Attribute(*a["correction"].as<double>()) : ir::Attribute(a.integer("correction"));
  const std::size_t rank = a.type(v.x).rank();
  if (a.numpy() && rank == 0 && a.given("dim")) throw Exception(Code::unsupported, "the variance along an axis that is not there, at which NumPy raises");
  if (const bool* unbiased = a["dim"].as<bool>()) {
    v.correction = Dim(*unbiased ? 1 : 0);
    a.bind("dim", {});
  }
  v.shape = {{"dim", a.dims("dim", rank)}, {"keepdim", a.flag("keepdim")}};
  refuse_too_few(a, v);
  return v;
}

Adapt variance_adapt(std::string op, bool with_mean) {
  return [=](ForeignArguments& a) -> Values {
    const VarianceArguments v = variance_arguments(a);
    ir::Attributes attributes = v.shape;
    attributes.push_back({"correction", v.correction});
    Values results = a.call(op, {v.x}, std::move(attributes));
    if (with_mean) {
      a.container = Container::tuple;
      const ir::ValueId mean = a.one("mean", {a.builder().cast(v.x, DType::f64)}, with_dtype(v.shape, DType::f64));
      results.push_back(a.builder().cast(mean, a.type(v.x).dtype));
    }
    return results;
  };
}

void name_variances(Family& ops) {
  for (Op& o : ops)
    for (const char* op : {"var", "std"}) {
      if (o.name != op) continue;
      const std::string torch = "(self, dim=None, unbiased=..., keepdim=False, *, correction=None, out=None)", name = op;
      const std::string numpy = "axis -> dim = None, dtype=None, out=None, ddof=0, keepdims -> keepdim = False, *, where=True, mean=None)";
      o.aliases = torch_names(name, torch, variance_adapt(name, false)) +
                  names({"torch." + name + "_mean"}, torch, variance_adapt(name, true)) +
                  names({"numpy." + name}, "(a -> self, " + numpy, variance_adapt(name, false)) +
                  names({"numpy.ndarray." + name}, "(self, " + numpy, variance_adapt(name, false));
    }
}

}  // namespace

Family variance_ops() {
  Family ops = {variance_op("var", false), variance_op("std", true)};
  name_variances(ops);
  return ops;
}

}  // namespace tenon::ops
