// Vector norms and logsumexp.
#include <cmath>
#include <limits>

#include "core/ops/gradients/gradients.h"
#include "core/ops/notation/reduce.h"

namespace tenon::ops {
namespace {

using ir::Dim;

/// ||x||_p as torch.linalg.vector_norm defines it, for every p: 0 counts, infinities take extremes.
LoopBody norm_loop(const OpQuery& q) {
  const ReductionShape shape(q);
  const double p = q.number("ord", 2);
  const DType t = compute_type(q.type(0).dtype);
  Scalars s;
  const Scalar x = s.abs(shape.load(s, q));
  const auto finish_with = [&](Reducer r, Scalar element) {
    s.result(element);
    return LoopBody{.extents = shape.extents, .reduced = shape.reduced.size(), .element = s.take(), .reducer = std::move(r)};
  };
  if (p == INFINITY) return finish_with(simple_reducer(t, 0, Primitive::maximum), x);
  if (p == -INFINITY) return finish_with(simple_reducer(t, INFINITY, Primitive::minimum), x);
  if (p == 0) return finish_with(simple_reducer(t, 0, Primitive::add), s.convert(s.binary(Primitive::ne, x, s.like(x, 0)), t));
  if (p == 1) return finish_with(simple_reducer(t, 0, Primitive::add), x);
  if (p == 2) return finish_with(simple_reducer(t, 0, Primitive::add, [](Scalars& f, Scalar v) { return f.sqrt(v); }), s.mul(x, x));
  return finish_with(
      simple_reducer(t, 0, Primitive::add, [p](Scalars& f, Scalar v) { return f.binary(Primitive::pow, v, f.like(v, 1 / p)); }),
      s.binary(Primitive::pow, x, s.like(x, p)));
}

double order_of(ForeignArguments& a, std::string_view parameter) {
  const ForeignArgument& p = a[parameter];
  if (const std::string* word = p.as<std::string>()) {
    if (*word == "fro") return 2;
    throw Exception(error(Code::unsupported, "the norm '{}'", *word));
  }
  return a.number(parameter, 2);
}

/// `ord` over one dimension or all; a matrix norm (two dimensions and an order) is not a vector norm.
Adapt norm_adapt(std::string parameter, bool matrices) {
  return [=](ForeignArguments& a) -> Values {
    a.refuse({"out"});
    ir::ValueId x = a.tensor(a.value("self"));
    if (a.numpy() && !is_float(a.type(x).dtype)) x = a.builder().cast(x, DType::f64);
    if (const auto dtype = a.dtype("dtype")) x = a.builder().cast(x, *dtype);
    TENON_USER_CHECK(is_float(a.type(x).dtype), "linalg.vector_norm: Expected a floating point or complex tensor as input. Got {}",
                     name_of(a.type(x).dtype));
    const std::vector<Dim> dims = a.dims("dim", a.type(x).rank());
    const bool word = a[parameter].as<std::string>() != nullptr;
    if (matrices && a.given(parameter) && word != (dims.size() == 2)) throw Exception(Code::unsupported, word ? "a matrix norm of what is no matrix" : "matrix norms with an order");
    if (matrices && is_empty_list(a["dim"])) throw Exception(Code::unsupported, "a norm over no dimensions");
    const double order = order_of(a, parameter);
    if (std::isnan(order)) throw Exception(Code::unsupported, "a norm whose order is nan");
    return a.call("linalg_vector_norm", {x}, {{"dim", dims}, {"keepdim", a.flag("keepdim")}, {"ord", order}});
  };
}

Op norm_op() {
  Op op;
  op.name = "linalg_vector_norm";
  op.schema = "(Tensor self, Scalar ord=2, int[]? dim=None, bool keepdim=False) -> Tensor";
  op.aliases =
      names({"torch.linalg.vector_norm"}, "(x -> self, ord=2, dim=None, keepdim=False, *, dtype=None, out=None)",
            norm_adapt("ord", false)) +
      names({"torch.linalg.norm"}, "(A -> self, ord=None, dim=None, keepdim=False, *, out=None, dtype=None)", norm_adapt("ord", true)) +
      names({"torch.norm", "torch.Tensor.norm"}, "(self, p='fro', dim=None, keepdim=False, out=None, dtype=None)", norm_adapt("p", false)) +
      names({"numpy.linalg.norm"}, "(x -> self, ord=None, axis -> dim = None, keepdims -> keepdim = False)", norm_adapt("ord", true));
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 1, 1);
    TENON_USER_CHECK(is_float(q.type(0).dtype), "takes float tensors, not {}", name_of(q.type(0).dtype));
    const ReductionShape shape(q);
    if (const double p = q.number("ord", 2); p < 0 || p == INFINITY)
      for (std::size_t d : shape.reduced)
        TENON_USER_CHECK(!(q.type(0).shape[d] == Dim(0)), "linalg.vector_norm cannot compute the {} norm of nothing: dimension {} is empty", p, d);
    return infer::one(q, q.type(0).dtype, shape.result);
  };
  op.loop = norm_loop;
  op.grad = written(gradients::vector_norm);
  op.samples = [] {
    auto all = reduction_samples(kFloats, Fill::normal, {{"ord", 2.0}});
    for (double p : {0.0, 1.0, 3.0, static_cast<double>(INFINITY), static_cast<double>(-INFINITY)})
      all.push_back({.name = fmt::format("order_{}", p),
                     .operands = {{.shape = {4, 6}}},
                     .attributes = {{"dim", std::vector<Dim>{1}}, {"keepdim", false}, {"ord", p}}});
    return all;
  };
  return op;
}

/// log(sum(exp(x))) around the maximum; a maximum that is infinite is not subtracted. Of no elements that is log(0).
Values logsumexp(NodeBuilder& b, const OpQuery& q) {
  const DType result = q.type(0).dtype, t = compute_type(result);
  const ReductionShape shape(q);
  if (shape.count == Dim(0)) return {b.full(-std::numeric_limits<double>::infinity(), result, shape.result)};
  std::vector<Dim> dims;
  for (std::size_t d : shape.reduced) dims.emplace_back(static_cast<std::int64_t>(d));
  const ir::ValueId x = b.cast(q.operands()[0], t);
  ir::ValueId largest = b.one("amax", {x}, {{"dim", dims}, {"keepdim", true}});
  const ir::ValueId finite = b.one("where", {b.one("isinf", {largest}), b.literal(0.0), largest});
  const ir::ValueId total =
      b.one("sum", {b.one("exp", {b.one("sub", {x, finite})})}, {{"dim", dims}, {"dtype", t}, {"keepdim", q.flag("keepdim")}});
  const ir::ValueId shift = b.one("reshape", {finite}, {{"shape", shape.result}});
  return {b.cast(b.one("add", {b.one("log", {total}), shift}), result)};
}

Op logsumexp_op() {
  Op op;
  op.name = "logsumexp";
  op.traits.layout = ResultLayout::row_major;
  op.schema = "(Tensor self, int[] dim, bool keepdim=False) -> Tensor";
  op.aliases = torch_names("logsumexp", "(self, dim, keepdim=False)",
                           [](ForeignArguments& a) {
                             ir::ValueId x = a.value("self");
                             TENON_USER_CHECK(!is_empty_list(a["dim"]), "logsumexp() takes a dimension");
                             if (!is_float(a.type(x).dtype)) x = a.builder().cast(x, a.default_float());
                             return a.call("logsumexp", {x}, reduction_attributes(a, x));
                           }) +
               names({"torch.special.logsumexp"}, "(self, dim, keepdim=False)");
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 1, 1);
    TENON_USER_CHECK(is_float(q.type(0).dtype), "takes float tensors, not {}", name_of(q.type(0).dtype));
    return infer::one(q, q.type(0).dtype, ReductionShape(q).result);
  };
  op.traits.is_inferred_whole = true;
  op.decompose = logsumexp;
  op.grad = written(gradients::logsumexp);
  op.samples = [] { return reduction_samples(kFloats, Fill::normal, {}, false); };
  return op;
}

}  // namespace

Family norm_ops() { return {norm_op(), logsumexp_op()}; }

}  // namespace tenon::ops
