// Likelihoods whose logarithms torch clamps: their gradients are not those of their formulas.
#include "core/ops/build/checked.h"
#include "core/ops/families/losses.h"
#include "core/ops/gradients/gradients.h"
#include "core/ops/notation/pointwise.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::Shape;
using V = ir::ValueId;

V within_unit(Formula& f, ForeignArguments& a, V x) { return a.one("logical_and", {f.two("ge", x, f.number(0)), f.two("le", x, f.number(1))}); }

Values binary_cross_entropy(ForeignArguments& a) {
  Formula f(a);
  const V input = a.value("self"), target = a.value("target");
  const DType t = f.dtype(input);
  if (!is_float(t) || t != f.dtype(target) || !(f.shape(input) == f.shape(target))) throw Exception(Code::unsupported, "binary_cross_entropy of these operands");
  refuse_unless(a.builder(), a.one("logical_and", {within_unit(f, a, input), within_unit(f, a, target)}));
  V loss = f.two("binary_cross_entropy", input, target);
  if (a.given("weight")) loss = f.cast(f.mul(loss, expand_to(a.builder(), a.value("weight"), f.shape(input))), t);
  return reduced_loss(a, loss, a.integer("reduction", Dim(1)).constant());
}

/// -(y log x + (1 - y) log(1 - x)), the logarithms at least -100.
Scalar cross_entropy_body(Scalars& s, Args a, const OpQuery&) {
  const Scalar x = a[0], y = a[1], least = s.like(x, -100);
  const Scalar no = s.maximum(s.unary(Primitive::log1p, s.neg(x)), least), yes = s.maximum(s.log(x), least);
  return s.sub(s.mul(s.sub(y, s.like(y, 1)), no), s.mul(y, yes));
}

}  // namespace

Family likelihood_ops() {
  Op op = pointwise("binary_cross_entropy", "(Tensor self, Tensor target) -> Tensor", Domain::floats, Promotion::none, cross_entropy_body,
                    names({"torch._C._nn.binary_cross_entropy", "torch.binary_cross_entropy"}, "(self, target, weight=None, reduction=0)", binary_cross_entropy));
  op.grad = written(gradients::binary_cross_entropy);
  op.samples = [] { return pointwise_samples(2, Domain::floats, Fill::probability, {}); };
  return {std::move(op)};
}

}  // namespace tenon::ops
