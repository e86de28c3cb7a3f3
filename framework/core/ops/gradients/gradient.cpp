#include "core/ops/gradients/gradient.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/ops/build/expand.h"
#include "core/ops/catalog.h"
#include "core/ops/infer.h"

namespace tenon::ops {
namespace {

/// Replays a program and walks it backwards. Adjoints are kept for float registers only: nothing flows through the others.
class Reverse {
 public:
  explicit Reverse(const ScalarProgram& program)
      : program_(program), adjoints_(program.instructions.size()) {
    for (const Instruction& i : program.instructions) values_.push_back(replay(i));
  }

  ScalarProgram run(std::span<const std::size_t> inputs) {
    std::size_t first_adjoint = 0;
    for (const Instruction& i : program_.instructions)
      if (i.op == Primitive::parameter) first_adjoint = std::max<std::size_t>(first_adjoint, i.payload + 1);
    for (std::size_t k : inputs) first_adjoint = std::max(first_adjoint, k + 1);
    for (std::size_t k = 0; k < program_.results.size(); ++k)
      give(program_.results[k], s_.parameter(first_adjoint + k, values_[program_.results[k]].dtype));
    for (std::size_t r = program_.instructions.size(); r-- > 0;) {
      if (!adjoints_[r]) continue;
      live_ = adjoints_[r]->live;
      propagate(program_.instructions[r], values_[r], adjoints_[r]->sum);
    }
    for (std::size_t k : inputs) s_.result(adjoint_of_parameter(k));
    return s_.take();
  }

 private:
  struct Adjoint {
    Scalar sum;
    std::optional<Scalar> live;  // whether no choice has left it out; nothing: none can have
  };

  Scalar value(const Instruction& i, std::size_t argument) const { return values_[i.args[argument]]; }

  Scalar replay(const Instruction& i) {
    switch (i.op) {
      case Primitive::constant:
        if (i.dtype == DType::f64) return s_.constant(i.dtype, std::bit_cast<double>(i.payload));
        if (i.dtype == DType::f32)
          return s_.constant(i.dtype, static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(i.payload))));
        return s_.constant(i.dtype, static_cast<std::int64_t>(i.payload));
      case Primitive::extent: return s_.extent(program_.dims[i.payload]);
      case Primitive::parameter: return s_.parameter(i.payload, i.dtype);
      case Primitive::select: return s_.select(value(i, 0), value(i, 1), value(i, 2));
      case Primitive::convert: return s_.convert(value(i, 0), i.dtype);
      case Primitive::bit_cast: return s_.bit_cast(value(i, 0), i.dtype);
      case Primitive::fma: return s_.fma(value(i, 0), value(i, 1), value(i, 2));
      case Primitive::loop_index:
      case Primitive::load: throw Exception(Code::internal, "the gradient of a program with loads");
      default: break;
    }
    const Op* op = find_op(op_of(i.op));
    const bool two = op && op->schema.find(", Tensor ") != std::string::npos;
    return two ? s_.binary(i.op, value(i, 0), value(i, 1)) : s_.unary(i.op, value(i, 0));
  }

  void give(std::uint32_t reg, Scalar adjoint) {
    if (!is_float(values_[reg].dtype)) return;
    std::optional<Adjoint>& known = adjoints_[reg];
    if (!known) {
      known = Adjoint{adjoint, live_};
      return;
    }
    known->sum = s_.add(known->sum, adjoint);
    known->live = known->live && live_ ? std::optional(s_.logical_or(*known->live, *live_)) : std::nullopt;
  }

  /// Hands on what is 0 where a choice took another branch.
  void give_chosen(std::uint32_t reg, Scalar adjoint, Scalar chosen) {
    const std::optional<Scalar> before = live_;
    live_ = before ? s_.logical_and(*before, chosen) : chosen;
    give(reg, adjoint);
    live_ = before;
  }

  // Where a choice took another branch the adjoint is 0, and the factor, which may be infinite or no number there, does not count.
  Scalar times(Scalar adjoint, Scalar factor) { return s_.mul(adjoint, live_ ? s_.select(*live_, factor, s_.like(factor, 0)) : factor); }
  Scalar over(Scalar adjoint, Scalar divisor) { return s_.div(adjoint, live_ ? s_.select(*live_, divisor, s_.like(divisor, 1)) : divisor); }

  Scalar adjoint_of_parameter(std::size_t k) {
    DType dtype = DType::f32;
    for (std::size_t r = 0; r < program_.instructions.size(); ++r) {
      const Instruction& i = program_.instructions[r];
      if (i.op != Primitive::parameter || i.payload != k) continue;
      if (adjoints_[r]) return adjoints_[r]->sum;
      if (is_float(i.dtype)) dtype = i.dtype;
    }
    return s_.constant(dtype, 0.0);
  }

  void propagate(const Instruction& i, Scalar r, Scalar g) {
    if (propagate_arithmetic(i, r, g)) return;
    if (const auto inverse = inverse_slope_of(i.op, value(i, 0), r)) return give(i.args[0], over(g, *inverse));
    if (const auto slope = slope_of(i.op, value(i, 0), r)) return give(i.args[0], times(g, *slope));
  }

  bool propagate_arithmetic(const Instruction& i, Scalar r, Scalar g) {
    Scalars& s = s_;
    const auto a = [&] { return value(i, 0); };
    const auto b = [&] { return value(i, 1); };
    switch (i.op) {
      case Primitive::add: give(i.args[0], g), give(i.args[1], g); return true;
      case Primitive::sub: give(i.args[0], g), give(i.args[1], s.neg(g)); return true;
      case Primitive::mul: give(i.args[0], times(g, b())), give(i.args[1], times(g, a())); return true;
      case Primitive::div: give(i.args[0], over(g, b())), give(i.args[1], times(g, s.neg(s.div(r, b())))); return true;
      case Primitive::fmod:
      case Primitive::remainder: {
        const Scalar quotient = s.unary(i.op == Primitive::fmod ? Primitive::trunc : Primitive::floor, s.div(a(), b()));
        give(i.args[0], g), give(i.args[1], times(g, s.neg(quotient)));
        return true;
      }
      case Primitive::minimum:
      case Primitive::maximum: propagate_extreme(i, g); return true;
      case Primitive::fma: give(i.args[0], times(g, b())), give(i.args[1], times(g, a())), give(i.args[2], g); return true;
      case Primitive::pow: propagate_power(i, r, g); return true;
      case Primitive::atan2: {
        const Scalar square = s.add(s.mul(a(), a()), s.mul(b(), b())), zero = s.like(g, 0), one = s.like(g, 1), origin = s.eq(square, zero);
        const Scalar part = s.select(origin, zero, s.div(one, square));
        give(i.args[0], times(g, s.mul(b(), part))), give(i.args[1], times(g, s.neg(s.mul(a(), part))));
        return true;
      }
      case Primitive::select: {
        const Scalar zero = s.like(g, 0), chosen = value(i, 0);
        give_chosen(i.args[1], s.select(chosen, g, zero), chosen), give_chosen(i.args[2], s.select(chosen, zero, g), s.logical_not(chosen));
        return true;
      }
      case Primitive::convert:
        if (is_float(a().dtype)) give(i.args[0], s.convert(g, a().dtype));
        return true;
      default: return false;
    }
  }

  void propagate_extreme(const Instruction& i, Scalar g) {
    const bool larger = i.op == Primitive::maximum;
    const Scalar a = value(i, 0), b = value(i, 1), half = s_.mul(g, s_.like(g, 0.5)), zero = s_.like(g, 0);
    const auto hand_on = [&](std::uint32_t reg, Scalar mine, Scalar other) {
      const Scalar loses = larger ? s_.lt(mine, other) : s_.gt(mine, other);
      give_chosen(reg, s_.select(loses, zero, s_.select(s_.eq(mine, other), half, g)), s_.logical_not(loses));
    };
    hand_on(i.args[0], a, b);
    hand_on(i.args[1], b, a);
  }

  /// d(a^b): b * a^(b-1), and a^b * log(a), which is 0 where a is 0 and b is not negative (ATen's pow_backward).
  void propagate_power(const Instruction& i, Scalar r, Scalar g) {
    const Scalar a = value(i, 0), b = value(i, 1), zero = s_.like(a, 0), one = s_.like(a, 1);
    const Scalar by_base = s_.mul(b, s_.binary(Primitive::pow, a, s_.sub(b, one)));
    give(i.args[0], s_.select(s_.eq(b, zero), zero, times(g, by_base)));
    const Scalar flat = s_.logical_and(s_.eq(a, zero), s_.ge(b, zero));
    give(i.args[1], times(g, s_.select(flat, zero, s_.mul(r, s_.log(a)))));
  }

  /// What the adjoint is divided by, of functions whose derivative is the inverse of something simpler.
  std::optional<Scalar> inverse_slope_of(Primitive p, Scalar a, Scalar r) {
    Scalars& s = s_;
    const auto number = [&](double v) { return s.like(a, v); };
    switch (p) {
      case Primitive::sqrt: return s.mul(number(2), r);
      case Primitive::log: return a;
      case Primitive::log2: return s.mul(a, number(std::numbers::ln2));
      case Primitive::log10: return s.mul(a, number(std::numbers::ln10));
      case Primitive::log1p: return s.add(a, number(1));
      case Primitive::atan: return s.add(number(1), s.mul(a, a));
      case Primitive::atanh: return s.sub(number(1), s.mul(a, a));
      default: return std::nullopt;
    }
  }

  /// The derivative of a function of one argument `a` with value `r`; nothing where it is 0 almost everywhere.
  std::optional<Scalar> slope_of(Primitive p, Scalar a, Scalar r) {
    Scalars& s = s_;
    const auto number = [&](double v) { return s.like(a, v); };
    const auto inverse_root = [&](Scalar x) { return s.unary(Primitive::rsqrt, x); };
    switch (p) {
      case Primitive::neg: return number(-1);
      case Primitive::abs: return s.unary(Primitive::sign, a);
      case Primitive::rsqrt: return s.mul(number(-0.5), s.mul(r, s.mul(r, r)));
      case Primitive::exp: return r;
      case Primitive::exp2: return s.mul(r, number(std::numbers::ln2));
      case Primitive::expm1: return s.add(r, number(1));
      case Primitive::sin: return s.unary(Primitive::cos, a);
      case Primitive::cos: return s.neg(s.unary(Primitive::sin, a));
      case Primitive::tan: return s.add(number(1), s.mul(r, r));
      case Primitive::asin: return inverse_root(s.sub(number(1), s.mul(a, a)));
      case Primitive::acos: return s.neg(inverse_root(s.sub(number(1), s.mul(a, a))));
      case Primitive::sinh: return s.unary(Primitive::cosh, a);
      case Primitive::cosh: return s.unary(Primitive::sinh, a);
      case Primitive::tanh: return s.sub(number(1), s.mul(r, r));
      case Primitive::asinh: return inverse_root(s.add(s.mul(a, a), number(1)));
      case Primitive::acosh: return inverse_root(s.sub(s.mul(a, a), number(1)));
      case Primitive::erf:
      case Primitive::erfc: {
        const double factor = (p == Primitive::erf ? 2 : -2) * std::numbers::inv_sqrtpi;
        return s.mul(number(factor), s.exp(s.neg(s.mul(a, a))));
      }
      case Primitive::lgamma: return digamma(a);
      default: return std::nullopt;
    }
  }

  /// The derivative of lgamma: shifted to arguments from 8 on by digamma(x + 1) = digamma(x) + 1/x, then its asymptotic series; below 1/2
  /// by digamma(1 - x) - pi / tan(pi x) (Abramowitz and Stegun, 6.3.5, 6.3.7 and 6.3.18). Infinite at 0, and no number at the other poles.
  Scalar digamma(Scalar x) {
    Scalars& s = s_;
    const auto number = [&](double v) { return s.like(x, v); };
    const Scalar one = number(1), reflected = s.lt(x, number(0.5)), y = s.select(reflected, s.sub(one, x), x);
    Scalar shift = number(0), z = y;
    for (int k = 0; k < 8; ++k) shift = s.add(shift, s.div(one, z)), z = s.add(z, one);
    const Scalar w = s.div(one, s.mul(z, z));
    Scalar series = number(-1.0 / 132);
    for (const double c : {1.0 / 240, -1.0 / 252, 1.0 / 120, -1.0 / 12}) series = s.add(s.mul(series, w), number(c));
    const Scalar positive = s.sub(s.add(s.sub(s.log(z), s.div(number(0.5), z)), s.mul(series, w)), shift);
    const Scalar whole = s.unary(Primitive::trunc, x), pole = s.logical_and(reflected, s.eq(x, whole));
    const Scalar part = s.select(s.logical_and(reflected, s.logical_not(pole)), s.sub(x, whole), number(0.25));
    const Scalar turned = s.div(number(std::numbers::pi), s.unary(Primitive::tan, s.mul(part, number(std::numbers::pi))));
    const Scalar at_pole = s.select(s.eq(x, number(0)), s.div(number(-1), x), number(NAN));
    return s.select(pole, at_pole, s.select(reflected, s.sub(positive, turned), positive));
  }

  const ScalarProgram& program_;
  Scalars s_;
  std::vector<Scalar> values_;
  std::vector<std::optional<Adjoint>> adjoints_;
  std::optional<Scalar> live_;  // of the adjoint which is being handed on
};

/// What an op's slope hands to some of the operands, as a program of the operands, the result, and its gradient.
ScalarProgram slope_program(const Op& op, const OpQuery& query, DType literals, DType result, std::span<const std::size_t> inputs) {
  Scalars s;
  std::vector<Scalar> operands;
  for (std::size_t k = 0; k < query.operand_count(); ++k) operands.push_back(s.parameter(k, query.literal(k) ? literals : compute_type(query.type(k).dtype)));
  const Scalar value = s.parameter(operands.size(), compute_type(result)), gradient = s.parameter(operands.size() + 1, compute_type(result));
  const std::vector<Scalar> handed = op.slope(s, operands, value, gradient, query);
  for (std::size_t k : inputs) s.result(handed[k]);
  return s.take();
}

}  // namespace

ScalarProgram gradient(const ScalarProgram& program, std::span<const std::size_t> inputs) { return Reverse(program).run(inputs); }

namespace {

/// What a value is the product of: signs, and factors that are the same all over some dimensions or not.
class Factors {
 public:
  Factors(const ir::Graph& graph, std::span<const ir::Dim> dims, std::size_t rank) : graph_(graph), rank_(rank) {
    for (const ir::Dim& d : dims) along_.push_back(static_cast<std::size_t>(d.constant()));
  }

  void add(ir::ValueId value) {
    const ir::ValueKind kind = graph_.value(value).kind;
    const ir::Node* node = kind == ir::ValueKind::result ? &graph_.node(graph_.value(value).node) : nullptr;
    if (kind == ir::ValueKind::literal) return numbers_.push_back(value);
    if (is_fixed(value)) return fixed_.push_back(value);
    if (node && node->op == "neg") return is_negative_ = !is_negative_, add(node->operands[0]);
    if (!node || node->op != "mul") return varying_.push_back(value);
    for (ir::ValueId v : node->operands) add(v);
  }

  /// Gives the sum over the dimensions, with the fixed factors behind it; nothing where there are none but numbers, or where what varies is not repeated as the value is.
  std::optional<ir::ValueId> sum(NodeBuilder& b, const ir::Type& type, const ir::Attributes& attributes) {
    if ((fixed_.empty() && (!is_negative_ || !numbers_.empty())) || varying_.empty()) return {};
    fixed_.insert(fixed_.end(), numbers_.begin(), numbers_.end());
    std::ranges::sort(varying_, {}, &ir::ValueId::value);  // so that equal products are equal nodes
    ir::ValueId product = varying_[0];
    for (ir::ValueId v : std::span(varying_).subspan(1)) product = b.one("mul", {product, v});
    if (graph_.type(product).shape != type.shape) return {};
    ir::ValueId sum = b.one("sum", {product}, attributes);
    for (ir::ValueId v : fixed_) sum = b.one("mul", {sum, v});
    return is_negative_ ? b.one("neg", {sum}) : sum;
  }

 private:
  bool is_fixed(ir::ValueId value) const {
    const ir::Shape& shape = graph_.type(value).shape;
    return std::ranges::all_of(along_, [&](std::size_t d) { return d + shape.size() < rank_ || shape[d + shape.size() - rank_] == ir::Dim(1); });
  }

  const ir::Graph& graph_;
  std::size_t rank_;
  std::vector<std::size_t> along_;
  std::vector<ir::ValueId> varying_, fixed_, numbers_;
  bool is_negative_ = false;
};

/// Sums over dimensions, which stay. What is the same all over them multiplies the sum and not each of its terms, as in ATen's normalisations: sums of one
/// gradient with several such factors are then one. Not in half precision, where products are rounded and sums are short of range.
ir::ValueId summed(NodeBuilder& b, ir::ValueId value, const std::vector<ir::Dim>& dims) {
  const ir::Type type = b.graph().type(value);
  const ir::Attributes attributes{{"dim", dims}, {"dtype", type.dtype}, {"keepdim", true}};
  if (type.dtype == DType::f32 || type.dtype == DType::f64) {
    Factors factors(b.graph(), dims, type.rank());
    factors.add(value);
    if (const auto sum = factors.sum(b, type, attributes)) return *sum;
  }
  return b.one("sum", {value}, attributes);
}

}  // namespace

ir::ValueId sum_to_shape(NodeBuilder& b, ir::ValueId gradient, const ir::Shape& to) {
  const ir::Type type = b.graph().type(gradient);
  std::vector<ir::Dim> dims;
  const std::size_t lead = type.rank() - to.size();
  for (std::size_t d = 0; d < type.rank(); ++d)
    if (d < lead || (to[d - lead] == ir::Dim(1) && !(type.shape[d] == ir::Dim(1)))) dims.emplace_back(static_cast<std::int64_t>(d));
  if (!dims.empty()) gradient = summed(b, gradient, dims);
  return b.graph().type(gradient).shape == to ? gradient : b.one("reshape", {gradient}, {{"shape", to}});
}

OperandGradients body_gradients(NodeBuilder& b, ir::NodeId id, ir::ValueId result_gradient) {
  const ir::Node node = b.graph().node(id);
  const ir::Type result = b.graph().type(node.results[0]);
  std::vector<std::size_t> inputs;
  std::vector<ir::ValueId> parameters(node.operands.begin(), node.operands.end());
  for (std::size_t k = 0; k < node.operands.size(); ++k)
    if (b.graph().value(node.operands[k]).kind != ir::ValueKind::literal && is_float(b.graph().type(node.operands[k]).dtype)) inputs.push_back(k);
  const Op& op = *find_op(node.op);
  const OpQuery query(b.graph(), node.operands, node.attributes);
  if (op.slope) parameters.push_back(node.results[0]);
  parameters.push_back(b.cast(result_gradient, compute_type(result.dtype)));
  const ScalarProgram program = op.slope ? slope_program(op, query, literal_dtype(query, result.dtype), result.dtype, inputs) : gradient(body_program(b.graph(), id), inputs);
  const auto values = expand_program(b, program, parameters, result.shape);
  OperandGradients gradients(node.operands.size());
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    const ir::Type operand = b.graph().type(node.operands[inputs[k]]);
    gradients[inputs[k]] = b.cast(sum_to_shape(b, values[k], operand.shape), operand.dtype);
  }
  return gradients;
}

std::string origin_of_gradient(const Op& op) {
  if (!op.no_grad_reason.empty()) return "none: " + op.no_grad_reason;
  if (op.grad) return "written";
  if (op.body) return "body";
  if (op.decompose) return "decomposition";
  return op.loop || op.scatter ? "loop nest" : "none";
}

bool is_differentiated_in_parts(const ir::Graph& graph, const ir::Node& node) {
  const Op* op = find_op(node.op);
  if (!op || !op->decompose || op->body || !op->no_grad_reason.empty()) return false;
  return !op->grad || (op->grad_holds && !op->grad_holds(OpQuery(graph, node.operands, node.attributes)));
}

OperandGradients node_gradients(NodeBuilder& b, ir::NodeId id, std::span<const std::optional<ir::ValueId>> result_gradients) {
  const ir::Node node = b.graph().node(id);
  const Op* op = find_op(node.op);
  TENON_CHECK(op, "unknown op '{}'", node.op);
  if (!op->no_grad_reason.empty()) throw Exception(error(Code::unsupported, "{} has no gradient: {}", node.op, op->no_grad_reason));
  b.on(infer::device_of(b.graph(), node));
  OperandGradients found(node.operands.size());
  if (op->grad) {
    std::vector<ir::ValueId> given;
    for (const auto& g : result_gradients) given.push_back(g.value_or(ir::ValueId()));
    const std::vector<ir::ValueId> operands = b.brought_here(node.operands);
    const auto made = op->grad(b, OpQuery(b.graph(), operands, node.attributes), node.results, given);
    for (std::size_t k = 0; k < made.size(); ++k)
      if (made[k]) found[k] = made[k];
  } else {
    TENON_CHECK(op->body || op->loop || op->scatter, "{} must be expanded before it is differentiated", node.op);
    const auto complex = [&](ir::ValueId v) { return b.graph().value(v).kind != ir::ValueKind::literal && is_complex(b.graph().type(v).dtype); };
    if (std::ranges::any_of(node.operands, complex) || std::ranges::any_of(node.results, complex)) throw Exception(error(Code::unsupported, "{} of complex numbers has no gradient", node.op));
    found = op->body ? body_gradients(b, id, *result_gradients[0]) : loop_gradients(b, id, *result_gradients[0]);
  }
  for (std::size_t k = 0; k < found.size(); ++k)
    if (b.graph().value(node.operands[k]).kind == ir::ValueKind::literal || !(is_float(b.graph().type(node.operands[k]).dtype) || is_complex(b.graph().type(node.operands[k]).dtype))) found[k].reset();
  for (std::size_t k = 0; k < found.size(); ++k)  // a host scalar may stand beside tensors of a device
    if (found[k]) found[k] = b.to_device(*found[k], b.graph().type(node.operands[k]).device);
  return found;
}

}  // namespace tenon::ops
