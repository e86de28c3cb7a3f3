// Complex numbers: put together, taken apart, turned round. Other arithmetic of theirs stands with the ops that they share with real numbers.
#include <numbers>

#include "core/ops/build/grad_builder.h"
#include "core/ops/gradients/gradient.h"
#include "core/ops/notation/complex_parts.h"
#include "core/ops/notation/formula.h"
#include "core/ops/notation/move.h"
#include "core/ops/notation/pointwise.h"

namespace tenon::ops {
namespace {

using ir::Dim;

void require_complex(const OpQuery& q) {
  infer::require_operands(q, 1, 1);
  TENON_USER_CHECK(!q.literal(0) && is_complex(q.type(0).dtype), "takes complex tensors; given {}", name_of(q.type(0).dtype));
}

bool is_of_complex(ForeignArguments& a) { return is_complex(a.type(a.value("self")).dtype); }

/// What of real numbers is those themselves.
Adapt of_complex_alone(std::string op) {
  return [op](ForeignArguments& a) -> Values { return is_of_complex(a) ? a.call(op, {a.value("self")}) : unchanged(a); };
}

std::vector<Sample> complex_samples(std::size_t operands, std::initializer_list<DType> dtypes) {
  std::vector<Sample> samples;
  for (DType t : dtypes) {
    samples.push_back({.name = std::string(name_of(t)), .operands = std::vector<SampleOperand>(operands, {.dtype = t, .shape = {3, 34}})});
    samples.push_back({.name = fmt::format("strided_{}", name_of(t)), .operands = std::vector<SampleOperand>(operands, {.dtype = t, .shape = {5, 2}, .strides = {{2, 1}}})});
  }
  return samples;
}

// The gradient of a complex number has for its parts those by its parts.
GradBuilder::Values real_gradient(GradBuilder& g) { return {g.one("complex", {g.gradient(), g.zeros(g.gradient())})}; }

GradBuilder::Values imag_gradient(GradBuilder& g) { return {g.one("complex", {g.zeros(g.gradient()), g.gradient()})}; }

GradBuilder::Values complex_gradient(GradBuilder& g) {
  const auto of = [&](const char* part, std::size_t k) { return sum_to_shape(g.nodes(), g.one(part, {g.gradient()}), g.shape(g.operand(k))); };
  const ir::ValueId real = of("real", 0);
  return {real, of("imag", 1)};
}

GradBuilder::Values view_as_real_gradient(GradBuilder& g) { return {g.one("view_as_complex", {g.gradient()})}; }

GradBuilder::Values view_as_complex_gradient(GradBuilder& g) { return {g.one("view_as_real", {g.gradient()})}; }

/// An op that gives a real number of each complex one.
Op part(std::string name, Scalar (Scalars::*take)(Scalar), GradBuilder::Values (*gradient)(GradBuilder&), std::vector<Alias> aliases) {
  Op op = unary(name, Domain::floats, [take](Scalars& s, Args a, const OpQuery&) { return (s.*take)(a[0]); }, std::move(aliases));
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    require_complex(q);
    return infer::one(q, real_type(q.type(0).dtype), q.type(0).shape);
  };
  op.samples = [] { return complex_samples(1, {DType::c64, DType::c128}); };
  op.grad = written(gradient);
  return op;
}

Family parts() {
  const auto real = [](ComplexFormula&, std::span<const Parts> z, const OpQuery&, Flavour) { return z[0].real; };
  const auto imaginary = [](ComplexFormula&, std::span<const Parts> z, const OpQuery&, Flavour) { return z[0].imaginary; };
  return {with_value_of_complex(part("real", &Scalars::real, real_gradient, torch_names("real", "(self)", of_complex_alone("real")) + names({"numpy.real"}, "(val -> self)", of_complex_alone("real")) +
                                                                 names({"numpy.ndarray.real"}, "(self)", of_complex_alone("real"))),
                                real),
          with_value_of_complex(part("imag", &Scalars::imag, imag_gradient, torch_names("imag", "(self)") + names({"numpy.imag"}, "(val -> self)") + names({"numpy.ndarray.imag"}, "(self)")), imaginary)};
}

/// torch.polar: a size and an angle.
Values polar(ForeignArguments& a) {
  Formula f(a);
  const ir::ValueId size = a.value("abs"), angle = a.value("angle");
  return {a.builder().one("complex", {f.mul(size, f.one("cos", angle)), f.mul(size, f.one("sin", angle))})};
}

Op complex_op() {
  Op op = pointwise(
      "complex", "(Tensor real, Tensor imag) -> Tensor", Domain::floats, Promotion::none, [](Scalars& s, Args a, const OpQuery&) { return s.complex(a[0], a[1]); },
      names({"torch.complex"}, "(real, imag, *, out=None)") + names({"torch.polar"}, "(abs, angle, *, out=None)", polar));
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 2, 2);
    const DType t = infer::shared_dtype(q);
    TENON_USER_CHECK(!q.literal(0) && !q.literal(1) && (t == DType::f32 || t == DType::f64), "takes float32 or float64 tensors; given {}", name_of(t));
    return infer::one(q, complex_type(t), infer::broadcast_operands(q));
  };
  op.samples = [] { return complex_samples(2, {DType::f32, DType::f64}); };
  op.grad = written(complex_gradient);
  return op;
}

/// The parts of complex numbers as a last dimension of two, and back.
Op view_as_real() {
  Op op;
  op.name = "view_as_real";
  op.schema = "(Tensor self) -> Tensor";
  op.aliases = names({"torch.view_as_real"});
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    require_complex(q);
    ir::Shape shape = q.type(0).shape;
    shape.emplace_back(2);
    return infer::one(q, real_type(q.type(0).dtype), std::move(shape));
  };
  op.loop = [](const OpQuery& q) {
    ir::Shape shape = q.type(0).shape;
    shape.emplace_back(2);
    return elementwise(std::move(shape), [&](Scalars& s) {
      auto at = IndexMath(s).loops(q.type(0).rank() + 1);
      const Scalar first = s.eq(at.back(), s.extent(Dim(0)));
      at.pop_back();
      const Scalar z = s.load(0, q.type(0).dtype, at);
      return s.select(first, s.real(z), s.imag(z));
    });
  };
  op.grad = written(view_as_real_gradient);
  op.of_complex = [](NodeBuilder& b, const OpQuery& q, Flavour) -> Values { return {b.one("view_as_real", {q.operands()[0]})}; };
  op.samples = [] { return complex_samples(1, {DType::c64, DType::c128}); };
  return op;
}

Op view_as_complex() {
  Op op;
  op.name = "view_as_complex";
  op.schema = "(Tensor self) -> Tensor";
  op.aliases = names({"torch.view_as_complex"});
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 1, 1);
    const DType t = q.type(0).dtype;
    TENON_USER_CHECK(!q.literal(0) && (t == DType::f32 || t == DType::f64), "view_as_complex is only supported for floats, but got a tensor of scalar type: {}", name_of(t));
    ir::Shape shape = q.type(0).shape;
    TENON_USER_CHECK(!shape.empty() && shape.back() == Dim(2), "Tensor must have a last dimension of size 2");
    shape.pop_back();
    return infer::one(q, complex_type(t), std::move(shape));
  };
  op.loop = [](const OpQuery& q) {
    ir::Shape shape = q.type(0).shape;
    shape.pop_back();
    return elementwise(std::move(shape), [&](Scalars& s) {
      auto at = IndexMath(s).loops(q.type(0).rank() - 1);
      const auto load = [&](std::int64_t which) {
        auto index = at;
        index.push_back(s.extent(Dim(which)));
        return s.load(0, q.type(0).dtype, index);
      };
      const Scalar real = load(0), imaginary = load(1);
      return s.complex(real, imaginary);
    });
  };
  op.samples = [] {
    std::vector<Sample> samples;
    for (DType t : {DType::f32, DType::f64}) samples.push_back({.name = std::string(name_of(t)), .operands = {{.dtype = t, .shape = {4, 35, 2}}}});
    return samples;
  };
  op.grad = written(view_as_complex_gradient);
  return op;
}

/// NumPy's ufunc has no loop for bools, and takes that for int8.
Values numpy_conjugate(ForeignArguments& a) {
  const ir::ValueId self = a.value("self");
  return is_bool(a.type(self).dtype) ? Values{a.builder().cast(self, DType::i8)} : of_complex_alone("conj")(a);
}

Op conjugate() {
  return with_complex(unary("conj", Domain::any, [](Scalars&, Args a, const OpQuery&) { return a[0]; },
                            torch_names("conj_physical", "(self, *, out=None)", of_complex_alone("conj")) + torch_names("conj", "(self)", of_complex_alone("conj")) + names({"torch.resolve_conj", "torch.resolve_neg"}, "(self)", unchanged) +
                                ufunc1({"conjugate", "conj"}, numpy_conjugate) + names({"numpy.ndarray.conj", "numpy.ndarray.conjugate"}, "(self)", of_complex_alone("conj"))),
                      [](ComplexFormula& f, std::span<const Parts> z, const OpQuery&, Flavour) -> Parts { return {z[0].real, f.one("neg", z[0].imaginary)}; });
}

/// Of real numbers: 0, or pi where negative; nan stays.
Scalar angle_body(Scalars& s, Args a, const OpQuery&) {
  const Scalar zero = s.like(a[0], 0), turned = s.select(s.lt(a[0], zero), s.like(a[0], std::numbers::pi), zero);
  return s.select(s.isnan(a[0]), s.unary(Primitive::floor, a[0]), turned);  // whose slope is 0, as that of all the rest
}

Op angle() {
  return with_value_of_complex(unary_float("angle", angle_body, torch_names("angle", "(self, *, out=None)")),
                               [](ComplexFormula& f, std::span<const Parts> z, const OpQuery&, Flavour) { return f.two("atan2", z[0].imaginary, z[0].real); });
}

}  // namespace

Family complex_ops() {
  Family all = parts();
  for (Op op : {complex_op(), view_as_real(), view_as_complex(), conjugate(), angle()}) all.push_back(std::move(op));
  return all;
}

}  // namespace tenon::ops
