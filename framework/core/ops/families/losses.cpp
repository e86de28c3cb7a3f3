// Loss functions, as ATen defines them, made of other ops: their names belong to `mean`. The one whose gradient is not that of its formula,
// for torch clamps its logarithms, is an op.
#include <cmath>
#include <numbers>

#include "core/ops/build/checked.h"
#include "core/ops/families/losses.h"
#include "core/ops/foreign/promotion.h"
#include "core/ops/gradients/gradients.h"
#include "core/ops/infer.h"
#include "core/ops/notation/pointwise.h"

namespace tenon::ops {

using ir::Dim;
using ir::Shape;
using V = ir::ValueId;

Values reduced_loss(ForeignArguments& a, ir::ValueId loss, std::int64_t reduction) {
  Formula f(a);
  switch (reduction) {
    case 0: return {loss};
    case 1: return {f.mean(loss)};
    case 2: return {f.sum(loss)};
    default: throw Exception(Code::unsupported, "this kind of reduction of a loss");
  }
}

namespace {

/// torch hands `reduction` on as at::Reduction.
Values reduced(ForeignArguments& a, V loss) { return reduced_loss(a, loss, a.integer("reduction", Dim(1)).constant()); }

/// A loss of two tensors, element by element.
Adapt elementwise_loss(std::function<V(Formula&, ForeignArguments&, V, V)> loss) {
  return [loss](ForeignArguments& a) {
    const V input = a.value("input"), target = a.value("target");
    if (!is_float(a.type(input).dtype)) throw Exception(Code::unsupported, "a loss of integers");
    Formula f(a);
    return reduced(a, loss(f, a, input, target));
  };
}

V squared_error(Formula& f, ForeignArguments&, V x, V y) {
  const V d = f.sub(x, y);
  return f.mul(d, d);
}

V absolute_error(Formula& f, ForeignArguments&, V x, V y) { return f.one("abs", f.sub(x, y)); }

/// A distance where it is not far: the branch that is not taken hands nothing back, even where the distance is infinite.
V unless_far(Formula& f, V far, V d) { return f.where(far, f.filled(0, f.dtype(d), {}), d); }

V smooth_l1(Formula& f, ForeignArguments& a, V x, V y) {
  const double beta = a.number("beta", 1);
  TENON_USER_CHECK(beta >= 0, "smooth_l1_loss does not support negative values for beta.");
  const V d = f.sub(x, y), z = f.one("abs", d);
  if (beta == 0) return z;
  const V far = f.two("ge", z, f.number(beta)), near = unless_far(f, far, d);
  return f.where(far, f.sub(z, f.number(0.5 * beta)), f.div(f.mul(f.mul(f.number(0.5), near), near), f.number(beta)));
}

V huber(Formula& f, ForeignArguments& a, V x, V y) {
  const double delta = a.number("delta", 1);
  TENON_USER_CHECK(delta > 0, "huber_loss does not support non-positive values for delta.");
  const V d = f.sub(x, y), z = f.one("abs", d), far = f.two("gt", z, f.number(delta));
  // The slope of what lies far would be infinite, and hand back no number.
  const bool never_far = f.dtype(x) == DType::f64 ? std::isinf(delta) : std::isinf(static_cast<float>(rounded_to(f.dtype(x), delta)));
  const V near = never_far ? d : unless_far(f, far, d);
  const V parabola = f.mul(f.mul(f.number(0.5), near), near);
  const V loss = never_far ? parabola : f.where(far, f.mul(f.number(delta), f.sub(z, f.number(0.5 * delta))), parabola);
  return f.cast(loss, f.dtype(x));  // torch computes into memory like the input
}

V kullback_leibler(Formula& f, ForeignArguments& a, V input, V target) {
  if (a.flag("log_target")) return f.mul(f.one("exp", target), f.sub(target, input));
  return f.sub(f.two("xlogy", target, target), f.mul(target, input));
}

/// torch computes in the memory of the result, which has the dtype of the input.
V soft_margin(Formula& f, ForeignArguments&, V input, V target) {
  if (!is_float(f.dtype(input))) throw Exception(Code::unsupported, "a soft margin loss of integers");
  return f.one("log1p", f.one("exp", f.mul(f.one("neg", f.cast(target, f.dtype(input))), input)));
}

V hinge_embedding(Formula& f, ForeignArguments& a, V input, V target) {
  const V margin = f.at_least(f.sub(f.number(a.number("margin", 1)), input), 0);
  const V unlike = f.where(f.two("ne", target, f.integer(1)), margin, f.number(0));
  return f.add(unlike, f.where(f.two("ne", target, f.integer(-1)), input, f.number(0)));
}

V poisson(Formula& f, ForeignArguments& a, V input, V target) {
  const V loss = a.flag("log_input", true)
                     ? f.sub(f.one("exp", input), f.mul(target, input))
                     : f.sub(input, f.mul(target, f.one("log", f.add(input, f.number(a.number("eps", 1e-8))))));
  if (!a.flag("full")) return loss;
  const V stirling = f.add(f.sub(f.mul(target, f.one("log", target)), target),
                           f.mul(f.number(0.5), f.one("log", f.mul(f.number(2 * std::numbers::pi), target))));
  return f.add(loss, f.where(f.two("le", target, f.integer(1)), f.number(0), stirling));
}

/// ATen: (1 - target) * input - weight * log(sigmoid(input)), weight = (pos_weight - 1) * target + 1; each step in the memory of the one
/// before it, which has the dtype of what began it.
Values cross_entropy_with_logits(ForeignArguments& a) {
  Formula f(a);
  const V input = a.value("self"), target = a.value("target");
  const DType t = f.dtype(target);
  if (!is_float(t) || !is_float(f.dtype(input))) throw Exception(Code::unsupported, "binary_cross_entropy_with_logits of integers");
  V positive = f.one("logsigmoid", input);
  if (a.given("pos_weight")) positive = f.cast(f.mul(f.add(f.mul(f.sub(a.value("pos_weight"), f.integer(1)), target), f.integer(1)), positive), f.dtype(input));
  V loss = f.cast(f.sub(f.cast(f.mul(f.sub(f.integer(1), target), input), t), positive), t);
  if (a.given("weight")) loss = f.cast(f.mul(loss, a.value("weight")), t);
  return reduced(a, loss);
}

// ---- losses of classes

/// -weight[target] * x[n, target], and the weights that count: 0 where the target is ignored.
struct ClassLoss {
  V loss, weight;
};

ClassLoss class_loss(ForeignArguments& a, V x, V target, std::int64_t ignored) {
  Formula f(a);
  const std::size_t dim = f.rank(x) > 1 ? 1 : 0;
  const DType t = f.dtype(x);
  const Shape shape = f.shape(target);
  const V counts = f.two("ne", target, f.integer(ignored)), safe = f.where(counts, target, f.integer(0));
  Shape wide = shape;
  wide.insert(wide.begin() + static_cast<std::ptrdiff_t>(dim), Dim(1));
  const V picked = reshape_to(a.builder(), a.one("gather", {x, reshape_to(a.builder(), safe, wide)}, {{"dim", Dim(static_cast<std::int64_t>(dim))}}), shape);
  V weight = f.cast(counts, t);
  if (a.given("weight")) {
    const V own = a.one("index_select", {a.value("weight"), reshape_to(a.builder(), safe, {Dim(-1)})}, {{"dim", Dim(0)}});
    weight = f.where(counts, reshape_to(a.builder(), own, shape), f.number(0));
  }
  return {f.where(counts, f.mul(f.one("neg", picked), weight), f.number(0)), weight};
}

Values reduced_classes(ForeignArguments& a, const ClassLoss& c) {
  Formula f(a);
  if (a.integer("reduction", Dim(1)).constant() != 1) return reduced(a, c.loss);
  return {f.div(f.sum(c.loss), f.sum(c.weight))};
}

void require_classes(ForeignArguments& a, V x, V target) {
  const std::size_t n = a.type(x).rank();
  if (n == 0 || !is_float(a.type(x).dtype) || a.type(target).dtype != DType::i64) throw Exception(Code::unsupported, "a loss of classes with these operands");
  TENON_USER_CHECK(a.type(target).rank() + 1 == n, "expected a target of {} dimensions, not {}", n - 1, a.type(target).rank());
  for (std::size_t d = 0; d + 1 < n; ++d) infer::require_equal(a.graph(), a.type(x).shape[d < 1 || n == 1 ? d : d + 1], a.type(target).shape[d], "the sizes of input and target");
}

Values nll_loss(ForeignArguments& a) {
  const V x = a.value("self"), target = a.value("target");
  require_classes(a, x, target);
  return reduced_classes(a, class_loss(a, x, target, a.integer("ignore_index", Dim(-100)).constant()));
}

/// Targets are probabilities of all classes.
Values soft_cross_entropy(ForeignArguments& a, V logs, V target, std::int64_t dim, double smoothing) {
  Formula f(a);
  const Dim classes = f.shape(logs)[static_cast<std::size_t>(dim)];
  const Dim count = floor_div(ir::product(f.shape(logs)), classes);
  if (smoothing > 0) {
    if (!classes.is_constant()) throw Exception(Code::unsupported, "label smoothing over classes of an unknown number");
    target = f.add(f.mul(target, f.number(1 - smoothing)), f.number(smoothing / static_cast<double>(classes.constant())));
  }
  V product = f.mul(logs, target);
  if (a.given("weight")) {
    Shape shape(f.rank(logs), Dim(1));
    shape[static_cast<std::size_t>(dim)] = classes;
    product = f.mul(product, reshape_to(a.builder(), a.value("weight"), shape));
  }
  if (a.integer("reduction", Dim(1)).constant() == 0) return {f.one("neg", f.sum(product, {Dim(dim)}))};
  const V total = f.one("neg", f.sum(product));
  if (a.integer("reduction", Dim(1)).constant() == 2) return {total};
  return {f.div(total, a.builder().literal(count))};
}

/// (1 - smoothing) * nll + smoothing / classes * the loss of all classes.
Values smoothed(ForeignArguments& a, V logs, V target, std::int64_t dim, double smoothing) {
  Formula f(a);
  const ClassLoss own = class_loss(a, logs, target, a.integer("ignore_index", Dim(-100)).constant());
  const Dim classes = f.shape(logs)[static_cast<std::size_t>(dim)];
  if (!classes.is_constant()) throw Exception(Code::unsupported, "label smoothing over classes of an unknown number");
  V all = logs;
  if (a.given("weight")) {
    Shape shape(f.rank(logs), Dim(1));
    shape[static_cast<std::size_t>(dim)] = classes;
    all = f.mul(all, reshape_to(a.builder(), a.value("weight"), shape));
  }
  const V counts = f.two("ne", target, f.integer(a.integer("ignore_index", Dim(-100)).constant()));
  V smooth = f.where(counts, f.one("neg", f.sum(all, {Dim(dim)})), f.number(0));
  const double share = smoothing / static_cast<double>(classes.constant());
  const auto mixed = [&](V nll, V rest) { return f.add(f.mul(nll, f.number(1 - smoothing)), f.mul(rest, f.number(share))); };
  if (a.integer("reduction", Dim(1)).constant() == 0) return {mixed(own.loss, smooth)};
  V nll = f.sum(own.loss);
  smooth = f.sum(smooth);
  if (a.integer("reduction", Dim(1)).constant() == 1) {
    const V count = f.sum(own.weight);
    nll = f.div(nll, count);
    smooth = f.div(smooth, count);
  }
  return {mixed(nll, smooth)};
}

Values cross_entropy(ForeignArguments& a) {
  const V x = a.value("self"), target = a.value("target");
  const std::size_t rank = a.type(x).rank();
  if (rank == 0 || !is_float(a.type(x).dtype)) throw Exception(Code::unsupported, "a cross entropy of these operands");
  const std::int64_t dim = rank > 1 ? 1 : 0;
  const double smoothing = a.number("label_smoothing", 0);
  TENON_USER_CHECK(smoothing >= 0 && smoothing <= 1, "label_smoothing must be between 0.0 and 1.0. Got: {}", smoothing);
  const bool soft = is_float(a.type(target).dtype);
  if (soft && !(a.type(target).shape == a.type(x).shape)) throw Exception(Code::unsupported, "probabilities of another shape than the input's");
  if (!soft) require_classes(a, x, target);
  const V logs = a.one("log_softmax", {x}, {{"dim", Dim(dim)}});
  if (soft) return soft_cross_entropy(a, logs, target, dim, smoothing);
  if (smoothing > 0) return smoothed(a, logs, target, dim, smoothing);
  return reduced_classes(a, class_loss(a, logs, target, a.integer("ignore_index", Dim(-100)).constant()));
}

// ---- losses of distances

Values margin_ranking(ForeignArguments& a) {
  Formula f(a);
  const V difference = f.mul(f.one("neg", a.value("target")), f.sub(a.value("input1"), a.value("input2")));
  return reduced(a, f.at_least(f.add(difference, f.number(a.number("margin", 0))), 0));
}

Values cosine_embedding(ForeignArguments& a) {
  Formula f(a);
  const V x = a.value("input1"), y = a.value("input2"), target = a.value("target");
  if (!is_float(f.dtype(x)) || !is_float(f.dtype(y))) throw Exception(Code::unsupported, "a cosine embedding of integers");
  const std::vector<Dim> dim{Dim(static_cast<std::int64_t>(f.rank(target)))};
  constexpr double kEpsilon = 1e-12;
  const V lengths = f.mul(f.add(f.sum(f.mul(x, x), dim), f.number(kEpsilon)), f.add(f.sum(f.mul(y, y), dim), f.number(kEpsilon)));
  const V cosine = f.div(f.sum(f.mul(x, y), dim), f.one("sqrt", lengths));
  const V like = f.where(f.two("eq", target, f.integer(1)), f.sub(f.number(1), cosine), f.number(0));
  const V unlike = f.where(f.two("eq", target, f.integer(-1)), f.at_least(f.sub(cosine, f.number(a.number("margin", 0))), 0), f.number(0));
  return reduced(a, f.add(like, unlike));
}

V distance(ForeignArguments& a, V x, V y, double p, double eps, bool keep) {
  Formula f(a);
  const V d = f.add(f.sub(x, y), f.number(eps));
  return a.one("linalg_vector_norm", {d}, {{"dim", std::vector<Dim>{Dim(static_cast<std::int64_t>(f.rank(d)) - 1)}}, {"keepdim", keep}, {"ord", p}});
}

Values pairwise_distance(ForeignArguments& a) {
  const V x = a.value("x1"), y = a.value("x2");
  if (a.type(x).rank() + a.type(y).rank() == 0) throw Exception(Code::unsupported, "a distance of these operands");
  return {distance(a, x, y, a.number("p", 2), a.number("eps", 1e-6), a.flag("keepdim"))};
}

Values triplet_margin(ForeignArguments& a) {
  Formula f(a);
  const V anchor = a.value("anchor"), positive = a.value("positive"), negative = a.value("negative");
  for (V v : {anchor, positive, negative})
    if (is_bool(f.dtype(v)) || f.rank(v) == 0) throw Exception(Code::unsupported, "a triplet loss of these operands");
  const double p = a.number("p", 2), eps = a.number("eps", 1e-6);
  const V near = distance(a, anchor, positive, p, eps, false);
  V far = distance(a, anchor, negative, p, eps, false);
  if (a.flag("swap")) far = f.two("minimum", far, distance(a, positive, negative, p, eps, false));
  return reduced(a, f.at_least(f.sub(f.add(f.number(a.number("margin", 1)), near), far), 0));
}

/// Each tensor is divided by its length, at least eps.
Values cosine_similarity(ForeignArguments& a) {
  Formula f(a);
  Values xy{a.value("x1"), a.value("x2")};
  a.promote(xy, Promotion::common);
  if (!is_float(f.dtype(xy[0]))) throw Exception(Code::unsupported, "a cosine of integers");
  const Shape shape = infer::broadcast(a.graph(), f.shape(xy[0]), f.shape(xy[1]));
  const std::vector<Dim> dim{Dim(infer::wrap_dim(a.integer("dim", Dim(1)).constant(), shape.size()))};
  for (V& v : xy) {
    v = expand_to(a.builder(), v, shape);
    const V length = a.one("linalg_vector_norm", {v}, {{"dim", dim}, {"keepdim", true}, {"ord", 2.0}});
    v = f.div(v, f.at_least(length, a.number("eps", 1e-8)));
  }
  return {f.sum(f.mul(xy[0], xy[1]), shape.empty() ? std::vector<Dim>{} : dim)};
}

std::vector<Alias> plain_loss(std::string_view name, std::string signature, std::function<V(Formula&, ForeignArguments&, V, V)> loss) {
  return names({fmt::format("torch.{}", name)}, std::move(signature), elementwise_loss(std::move(loss)));
}

/// max(0, margin - x[target] + x[j])^p over the other classes, over their number.
Values multi_margin(ForeignArguments& a) {
  Formula f(a);
  V x = a.value("self"), target = a.value("target");
  const double p = a.number("p", 1);
  if (!is_float(f.dtype(x)) || f.rank(x) > 2 || (p != 1 && p != 2)) throw Exception(Code::unsupported, "a multi margin loss of these operands");
  const bool one = f.rank(x) < 2;
  if (one) x = reshape_to(a.builder(), x, {Dim(1), Dim(-1)});
  const Shape shape = f.shape(x);
  const V column = reshape_to(a.builder(), target, {shape[0], Dim(1)});
  V margin = f.add(f.sub(f.number(a.number("margin", 1)), a.one("gather", {x, column}, {{"dim", Dim(1)}})), x);
  margin = f.where(f.two("gt", margin, f.number(0)), margin, f.number(0));  // what is no number does not count
  if (p == 2) margin = f.mul(margin, margin);
  if (a.given("weight")) margin = f.mul(margin, reshape_to(a.builder(), a.one("index_select", {a.value("weight"), reshape_to(a.builder(), column, {shape[0]})}, {{"dim", Dim(0)}}), {shape[0], Dim(1)}));
  const V classes = a.one("arange", {}, {{"dtype", DType::i64}, {"end", shape[1]}, {"start", Dim(0)}, {"step", Dim(1)}});
  const V total = f.sum(f.where(f.two("ne", classes, column), margin, f.number(0)), {Dim(1)});
  const V loss = f.div(total, a.builder().literal(shape[1]));
  return reduced(a, one ? reshape_to(a.builder(), loss, {}) : loss);
}

/// The sum over classes k that are targets, up to the first -1, and over j that are none, of max(0, 1 - x[k] + x[j]), over the number of classes.
Values multilabel_margin(ForeignArguments& a) {
  Formula f(a);
  V x = a.value("self"), target = a.value("target");
  const Shape given = f.shape(x);
  if (!is_float(f.dtype(x)) || given.empty() || given.size() > 2 || f.dtype(target) != DType::i64 || !(f.shape(target) == given))
    throw Exception(Code::unsupported, "a multilabel margin loss of these operands");
  const Dim classes = given.back(), batch = given.size() == 2 ? given[0] : Dim(1);
  x = reshape_to(a.builder(), x, {batch, classes});
  target = reshape_to(a.builder(), target, {batch, classes});
  refuse_unless(a.builder(), a.one("logical_and", {f.two("ge", target, f.integer(-1)), f.two("lt", target, a.builder().literal(classes))}));
  const V ended = a.one("cumsum", {f.cast(f.two("eq", target, f.integer(-1)), DType::i64)}, {{"dim", Dim(1)}, {"dtype", DType::i64}});
  const V counts = f.two("eq", ended, f.integer(0)), label = f.where(counts, target, f.integer(0));
  const auto by_label = [&](V v) { return reshape_to(a.builder(), v, {batch, classes, Dim(1)}); };
  const auto by_class = [&](V v) { return reshape_to(a.builder(), v, {batch, Dim(1), classes}); };
  const V numbers = a.one("arange", {}, {{"dtype", DType::i64}, {"end", classes}, {"start", Dim(0)}, {"step", Dim(1)}});
  const V named = a.one("logical_and", {f.two("eq", by_label(label), numbers), by_label(counts)});
  const V other = f.one("logical_not", a.one("any", {named}, {{"dim", std::vector<Dim>{Dim(1)}}, {"keepdim", false}}));
  const V margin = f.add(f.sub(f.number(1), by_label(a.one("gather", {x, label}, {{"dim", Dim(1)}}))), by_class(x));
  const V positive = a.one("logical_and", {f.two("gt", margin, f.number(0)), a.one("logical_and", {by_label(counts), by_class(other)})});
  const V loss = f.div(f.sum(f.where(positive, margin, f.number(0)), {Dim(1), Dim(2)}), a.builder().literal(classes));
  return reduced(a, given.size() == 2 ? loss : reshape_to(a.builder(), loss, {}));
}

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

/// torch's functions of C reduce nothing where they are not told to, whatever their schema says: their parser reads the name of the default
/// (python_arg_parser.cpp, `default_int`) as 0.
std::vector<Alias> loss_names() {
  return plain_loss("mse_loss", "(input, target, reduction=0)", squared_error) + plain_loss("l1_loss", "(input, target, reduction=0)", absolute_error) + plain_loss("smooth_l1_loss", "(input, target, reduction=0, beta=1.0)", smooth_l1) +
         plain_loss("huber_loss", "(input, target, reduction=0, delta=1.0)", huber) + plain_loss("kl_div", "(input, target, reduction=0, *, log_target=False)", kullback_leibler) +
         plain_loss("soft_margin_loss", "(input, target, reduction=0)", soft_margin) + plain_loss("hinge_embedding_loss", "(input, target, margin=1.0, reduction=0)", hinge_embedding) +
         plain_loss("poisson_nll_loss", "(input, target, log_input, full, eps, reduction)", poisson) +
         names({"torch.binary_cross_entropy_with_logits"}, "(self, target, weight=None, pos_weight=None, reduction=0)", cross_entropy_with_logits) +
         names({"torch.nll_loss_nd"}, "(self, target, weight=None, reduction=0, ignore_index=-100)", nll_loss) +
         names({"torch.cross_entropy_loss"}, "(self, target, weight=None, reduction=0, ignore_index=-100, label_smoothing=0.0)", cross_entropy) +
         names({"torch.margin_ranking_loss"}, "(input1, input2, target, margin=0.0, reduction=0)", margin_ranking) +
         names({"torch.cosine_embedding_loss"}, "(input1, input2, target, margin=0.0, reduction=0)", cosine_embedding) +
         names({"torch.triplet_margin_loss"}, "(anchor, positive, negative, margin=1.0, p=2.0, eps=1e-06, swap=False, reduction=0)", triplet_margin) +
         names({"torch.multi_margin_loss"}, "(self, target, p=1, margin=1, weight=None, reduction=0)", multi_margin) +
         names({"torch.multilabel_margin_loss"}, "(self, target, reduction=0)", multilabel_margin) +
         names({"torch.pairwise_distance"}, "(x1, x2, p=2.0, eps=1e-06, keepdim=False)", pairwise_distance) +
         names({"torch.cosine_similarity"}, "(x1, x2, dim=1, eps=1e-08)", cosine_similarity);
}

Family loss_ops() {
  Op op = pointwise("binary_cross_entropy", "(Tensor self, Tensor target) -> Tensor", Domain::floats, Promotion::none, cross_entropy_body,
                    names({"torch._C._nn.binary_cross_entropy", "torch.binary_cross_entropy"}, "(self, target, weight=None, reduction=0)", binary_cross_entropy));
  op.grad = written(gradients::binary_cross_entropy);
  op.samples = [] { return pointwise_samples(2, Domain::floats, Fill::probability, {}); };
  return {std::move(op)};
}

}  // namespace tenon::ops
