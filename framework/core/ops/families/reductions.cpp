// Sums, products, means, extremes and their places, any, all.
#include <cmath>
#include <limits>

#include "core/ops/gradients/gradients.h"
#include "core/ops/notation/complex_parts.h"
#include "core/ops/notation/reduce.h"

namespace tenon::ops {
namespace {

using ir::Dim;

const std::vector<DType> kAll{DType::b8,  DType::u8,  DType::i8,   DType::i16, DType::i32,
                              DType::i64, DType::f16, DType::bf16, DType::f64, DType::f32};
const std::vector<DType> kNumbers{DType::u8,  DType::i8,   DType::i16, DType::i32, DType::i64,
                                  DType::f16, DType::bf16, DType::f64, DType::f32};
DType sum_dtype(DType t) { return is_float(t) ? t : DType::i64; }

Op reduction(std::string name, std::string more, std::function<DType(const OpQuery&)> dtype, std::function<LoopBody(const OpQuery&)> loop) {
  Op op;
  op.name = std::move(name);
  op.schema = fmt::format("(Tensor self, int[]? dim=None, bool keepdim=False{}) -> Tensor", more);
  op.infer = [dtype](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 1, 1);
    return infer::one(q, dtype(q), ReductionShape(q).result);
  };
  op.loop = std::move(loop);
  return op;
}

// ---- sum, prod, mean

/// The operand converted to the dtype of the result, and reduced in its compute type.
Op accumulation(std::string name, double identity, Primitive combine) {
  const auto dtype = [](const OpQuery& q) { return q.dtype("dtype", sum_dtype(q.type(0).dtype)); };
  Op op = reduction(std::move(name), ", *, ScalarType? dtype=None", dtype, [=](const OpQuery& q) {
    const ReductionShape shape(q);
    const DType t = compute_type(dtype(q));
    Scalars s;
    s.result(s.convert(shape.load(s, q), t));
    return LoopBody{
        .extents = shape.extents, .reduced = shape.reduced.size(), .element = s.take(), .reducer = simple_reducer(t, identity, combine)};
  });
  return op;
}

/// What torch and NumPy add small integers in; NumPy has an unsigned type for unsigned ones that Tenon lacks.
DType accumulated(ForeignArguments& a, DType t) {
  if (const auto given = a.dtype("dtype")) return *given;
  if (a.numpy() && t == DType::u8) throw Exception(Code::unsupported, "NumPy accumulates uint8 in uint64, which Tenon lacks; give a dtype");
  return is_complex(t) ? t : sum_dtype(t);
}

Adapt accumulate(std::string op) {
  return [op](ForeignArguments& a) {
    a.refuse({"initial", "where", "out"});
    if (!a.numpy() && op == "prod") TENON_USER_CHECK(!a["dim"].as<ForeignList>(), "prod() takes one dimension");
    const ir::ValueId x = a.tensor(a.value("self"));
    ir::Attributes attributes = reduction_attributes(a, x);
    attributes.emplace_back("dtype", accumulated(a, a.type(x).dtype));
    return a.call(op, {x}, std::move(attributes));
  };
}

DType mean_dtype(const OpQuery& q) { return q.dtype("dtype", q.type(0).dtype); }

Op mean_op() {
  Op op = reduction(
      "mean", ", *, ScalarType? dtype=None",
      [](const OpQuery& q) {
        TENON_USER_CHECK(is_float(mean_dtype(q)), "gives floats, not {}: state a float dtype", name_of(mean_dtype(q)));
        return mean_dtype(q);
      },
      [](const OpQuery& q) {
        const ReductionShape shape(q);
        const DType t = compute_type(mean_dtype(q));
        Scalars s;
        s.result(s.convert(shape.load(s, q), t));
        const auto divide = [&](Scalars& f, Scalar total) { return f.div(total, f.convert(f.extent(shape.count), t)); };
        return LoopBody{.extents = shape.extents,
                        .reduced = shape.reduced.size(),
                        .element = s.take(),
                        .reducer = simple_reducer(t, 0, Primitive::add, divide)};
      });
  const Adapt adapt = [](ForeignArguments& a) {
    a.refuse({"where", "out", "initial"});
    const ir::ValueId x = a.tensor(a.value("self"));
    const DType given = a.type(x).dtype;
    DType t = a.dtype("dtype").value_or(a.numpy() && !is_float(given) && !is_complex(given) ? DType::f64 : given);
    TENON_USER_CHECK(is_float(t) || is_complex(t),
                     "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: {}",
                     name_of(t));
    ir::Attributes attributes = reduction_attributes(a, x);
    if (a.numpy() && elements_of_result(a, x) == Dim(0)) throw Exception(Code::unsupported, "the mean of nothing, of which NumPy warns");
    attributes.emplace_back("dtype", t);
    return a.call("mean", {x}, std::move(attributes));
  };
  op.aliases = reduction_names("mean", "mean", adapt) +
               names({"numpy.average"}, "(a -> self, axis -> dim = None, weights=None, returned=False, *, keepdims -> keepdim = False)",
                     [adapt](ForeignArguments& a) {
                       a.refuse({"weights", "returned"});
                       if (a.type(a.tensor(a.value("self"))).element_count() == Dim(0)) throw Exception(Code::unsupported, "the average of nothing, at which NumPy raises");
                       return adapt(a);
                     });
  op.samples = [] { return reduction_samples(kFloats); };
  return op;
}

// ---- extremes

void require_elements(const OpQuery& q) {
  TENON_USER_CHECK(!(ReductionShape(q).count == Dim(0)), "the extreme of no elements does not exist: a reduced dimension has size 0");
}

Op extreme_op(std::string name, bool largest) {
  Op op = reduction(
      std::move(name), ", *, bool evenly=False",
      [](const OpQuery& q) {
        require_elements(q);
        return q.type(0).dtype;
      },
      [largest](const OpQuery& q) {
        const ReductionShape shape(q);
        const DType t = compute_type(q.type(0).dtype);
        Scalars s, init;
        s.result(shape.load(s, q));
        init.result(extreme_value(init, t, !largest));
        Reducer r = simple_reducer(t, 0, largest ? Primitive::maximum : Primitive::minimum);
        r.init = init.take();
        return LoopBody{.extents = shape.extents, .reduced = shape.reduced.size(), .element = s.take(), .reducer = std::move(r)};
      });
  op.grad = written(gradients::extreme);
  op.samples = [] { return reduction_samples(kAll, Fill::normal, {}, false); };
  return op;
}

/// The row-major position among the reduced dimensions.
Scalar reduced_position(Scalars& s, const OpQuery& q, const ReductionShape& shape) {
  IndexMath m(s);
  Scalar at = s.constant(DType::i64, std::int64_t{0});
  for (std::size_t k = 0; k < shape.reduced.size(); ++k) {
    const Scalar i = s.loop_index(shape.result.size() + k);
    at = k == 0 ? i : s.add(m.mul(at, q.type(0).shape[shape.reduced[k]]), i);
  }
  return at;
}

LoopBody place_loop(const OpQuery& q, bool largest, bool with_value) {
  const ReductionShape shape(q);
  const DType t = compute_type(q.type(0).dtype), place = place_type(shape.count);
  Scalars s;
  s.result(shape.load(s, q));
  s.result(s.convert(reduced_position(s, q, shape), place));
  return {.extents = shape.extents,
          .reduced = shape.reduced.size(),
          .element = s.take(),
          .reducer = place_reducer(t, place, largest, NanPlace::first, with_value)};
}

/// Without a dimension: of the flattened tensor. NumPy keeps the rank with keepdims even then.
Adapt place_adapt(std::string op) {
  return [op](ForeignArguments& a) {
    const ir::ValueId x = a.tensor(a.value("self"));
    const bool flatten = !a.given("dim");
    if (!flatten && !a["dim"].as<Dim>()) throw Exception(Code::unsupported, "argmax over several dimensions");
    return a.call(op, {x}, {{"dim", a.dims("dim", a.type(x).rank())}, {"keepdim", a.flag("keepdim")}});
  };
}

Op place_op(std::string name, bool largest) {
  Op op = reduction(
      name, "",
      [](const OpQuery& q) {
        require_elements(q);
        return DType::i64;
      },
      [largest](const OpQuery& q) { return place_loop(q, largest, false); });
  op.aliases = torch_names(name, "(self, dim=None, keepdim=False)", place_adapt(name)) +
               names({"numpy." + name}, "(a -> self, axis -> dim = None, out=None, *, keepdims -> keepdim = False)", place_adapt(name)) +
               names({"numpy.ndarray." + name}, "(self, axis -> dim = None, out=None, *, keepdims -> keepdim = False)", place_adapt(name));
  op.samples = [] { return reduction_samples(kNumbers, Fill::normal, {}, false); };
  op.no_grad_reason = "its result is an integer";
  return op;
}

Op extreme_with_place(std::string name, bool largest) {
  Op op;
  op.name = std::move(name);
  op.schema = "(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)";
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 1, 1);
    require_elements(q);
    const ir::Shape shape = ReductionShape(q).result;
    return infer::Types{ir::Type::tensor(q.type(0).dtype, shape, infer::device(q)), ir::Type::tensor(DType::i64, shape, infer::device(q))};
  };
  op.loop = [largest](const OpQuery& q) { return place_loop(q, largest, true); };
  op.grad = written(gradients::extreme_with_place);
  op.samples = [] {
    std::vector<Sample> all;
    for (DType t : kNumbers)
      for (std::int64_t dim : {0, -1})
        all.push_back({.name = fmt::format("{}_{}", name_of(t), dim < 0 ? "last" : "first"),
                       .operands = {{.dtype = t, .shape = {5, 7}}},
                       .attributes = {{"dim", Dim(dim)}, {"keepdim", dim < 0}}});
    all.push_back(
        {.name = "special", .operands = {{.shape = {9, 6}, .fill = Fill::special}}, .attributes = {{"dim", Dim(1)}, {"keepdim", false}}});
    return all;
  };
  return op;
}

/// torch.max in its three forms: of all, along a dimension with places, of two tensors.
Adapt torch_extreme(std::string all, std::string along, std::string two) {
  return [=](ForeignArguments& a) -> Values {
    if (a.is_tensor("dim")) return a.call(two, {a.value("self"), a.value("dim")});
    if (a.given("other")) return a.call(two, {a.value("self"), a.value("other")});
    const ir::ValueId x = a.value("self");
    if (!a.given("dim")) {
      ir::Attributes attributes = reduction_attributes(a, x);
      attributes.emplace_back("evenly", true);
      return a.call(all, {x}, std::move(attributes));
    }
    a.container = Container::tuple;
    return a.call(along, {x}, {{"dim", Dim(a.dim("dim", a.type(x).rank()))}, {"keepdim", a.flag("keepdim")}});
  };
}

Adapt plain_reduction(std::string op) {
  return [op](ForeignArguments& a) -> Values {
    a.refuse({"where", "out", "dtype"});
    const ir::ValueId x = a.tensor(a.value("self"));
    Values result = a.call(op, {x}, reduction_attributes(a, x));
    if (!a.given("initial")) return result;
    result.push_back(a.value("initial"));
    if (a.promoted(result, Promotion::common) != a.type(x).dtype) throw Exception(Code::unsupported, "a first value that NumPy converts to the array's dtype");
    return a.call(op == "amax" ? "maximum" : "minimum", result);
  };
}

void name_extremes(Family& ops) {
  const auto add = [&](std::string_view op, std::string_view word, std::string_view along, std::string_view two) {
    for (Op& o : ops) {
      if (o.name != op) continue;
      const std::string name(op), w(word);
      o.aliases = torch_names(name, "(self, dim=None, keepdim=False, *, out=None)", plain_reduction(name)) +
                  reduction_names("", w, plain_reduction(name)) + reduction_names("", name, plain_reduction(name)) +
                  torch_names(w, "(self, dim=..., keepdim=False, *, other=..., out=None)",
                              torch_extreme(name, std::string(along), std::string(two)));
    }
  };
  add("amax", "max", "max_dim", "maximum");
  add("amin", "min", "min_dim", "minimum");
}

// ---- any, all, count_nonzero

Op truth_op(std::string name, bool identity, Primitive combine) {
  Op op = reduction(
      name, "", [](const OpQuery&) { return DType::b8; },
      [=](const OpQuery& q) {
        const ReductionShape shape(q);
        Scalars s;
        s.result(s.convert(shape.load(s, q), DType::b8));
        return LoopBody{.extents = shape.extents,
                        .reduced = shape.reduced.size(),
                        .element = s.take(),
                        .reducer = simple_reducer(DType::b8, identity, combine)};
      });
  const Adapt adapt = [name](ForeignArguments& a) -> Values {
    a.refuse({"where", "out", "initial", "dtype"});
    const ir::ValueId x = a.tensor(a.value("self"));
    if (!a.numpy() && is_empty_list(a["dim"])) throw Exception(Code::unsupported, "no dimension, which torch takes for none here");
    const ir::ValueId truth = a.one(name, {x}, reduction_attributes(a, x));
    return {!a.numpy() && a.type(x).dtype == DType::u8 ? a.builder().cast(truth, DType::u8) : truth};
  };
  op.aliases = reduction_names(name, name, adapt);
  op.samples = [] { return reduction_samples(kAll, Fill::unit); };
  op.no_grad_reason = "its result is bool";
  return op;
}

Op count_op() {
  Op op = reduction(
      "count_nonzero", "", [](const OpQuery&) { return DType::i64; },
      [](const OpQuery& q) {
        const ReductionShape shape(q);
        Scalars s;
        s.result(s.convert(s.convert(shape.load(s, q), DType::b8), DType::i64));
        return LoopBody{.extents = shape.extents,
                        .reduced = shape.reduced.size(),
                        .element = s.take(),
                        .reducer = simple_reducer(DType::i64, 0, Primitive::add)};
      });
  const Adapt adapt = [](ForeignArguments& a) {
    const ir::ValueId x = a.tensor(a.value("self"));
    return a.call("count_nonzero", {x}, reduction_attributes(a, x));
  };
  op.aliases = torch_names("count_nonzero", "(self, dim=None)", adapt) +
               names({"numpy.count_nonzero"}, "(a -> self, axis -> dim = None, *, keepdims -> keepdim = False)", adapt);
  op.samples = [] { return reduction_samples(kAll, Fill::unit); };
  op.no_grad_reason = "its result is an integer";
  return op;
}

// ---- reductions that leave nan out

ir::ValueId without_nan(ForeignArguments& a, ir::ValueId x, double instead) {
  if (!is_float(a.type(x).dtype)) return x;
  return a.one("where", {a.one("isnan", {x}), a.builder().literal(instead), x});
}

Adapt nan_accumulation(std::string op, double instead) {
  return [=](ForeignArguments& a) {
    a.refuse({"initial", "where", "out"});
    const ir::ValueId x = a.tensor(a.value("self"));
    ir::Attributes attributes = reduction_attributes(a, x);
    attributes.emplace_back("dtype", accumulated(a, a.type(x).dtype));
    return a.call(op, {without_nan(a, x, instead)}, std::move(attributes));
  };
}

Values nan_mean(ForeignArguments& a) {
  a.refuse({"initial", "where", "out"});
  ir::ValueId x = a.tensor(a.value("self"));
  if (const auto dtype = a.dtype("dtype")) x = a.builder().cast(x, *dtype);
  if (!is_float(a.type(x).dtype)) x = a.builder().cast(x, DType::f64);
  const DType t = a.type(x).dtype;
  const ir::Attributes shape = reduction_attributes(a, x);
  const ir::ValueId total = a.one("sum", {without_nan(a, x, 0)}, with_dtype(shape, compute_type(t)));
  const ir::ValueId present = a.one("sum", {a.one("logical_not", {a.one("isnan", {x})})}, with_dtype(shape, compute_type(t)));
  return {a.builder().cast(a.one("div", {total, present}), t)};
}

/// The extreme of what is no nan; nan where there is nothing else.
Adapt nan_extreme(std::string op, double instead) {
  return [=](ForeignArguments& a) -> Values {
    a.refuse({"initial", "where", "out", "dtype"});
    const ir::ValueId x = a.tensor(a.value("self"));
    const ir::Attributes shape = reduction_attributes(a, x);
    const ir::ValueId found = a.one(op, {without_nan(a, x, instead)}, shape);
    if (!is_float(a.type(x).dtype)) return {found};
    // NumPy warns of a lane that is nothing but nan, so the nan is the result of an invalid operation.
    const ir::ValueId all_nan = a.one("all", {a.one("isnan", {x})}, shape);
    const ir::ValueId removed = a.one("where", {all_nan, a.builder().literal(instead), a.builder().literal(0.0)});
    return a.call("sub", {found, a.builder().cast(removed, a.type(x).dtype)});
  };
}

}  // namespace

Family reduction_ops() {
  Family ops = {part_by_part(accumulation("sum", 0, Primitive::add)),
                accumulation("prod", 1, Primitive::mul),
                part_by_part(mean_op()),
                extreme_op("amax", true),
                extreme_op("amin", false),
                place_op("argmax", true),
                place_op("argmin", false),
                extreme_with_place("max_dim", true),
                extreme_with_place("min_dim", false),
                truth_op("any", false, Primitive::logical_or),
                truth_op("all", true, Primitive::logical_and),
                count_op()};
  ops[0].aliases = reduction_names("sum", "sum", accumulate("sum")) + reduction_names("nansum", "nansum", nan_accumulation("sum", 0)) +
                   names({"numpy.add.reduce"},
                         "(array -> self, axis -> dim = 0, dtype=None, out=None, keepdims -> keepdim = False, initial=None, where=True)",
                         accumulate("sum"));
  ops[1].aliases = torch_names("prod", "(self, dim=..., keepdim=False, *, dtype=None, out=None)", accumulate("prod")) + reduction_names("", "prod", accumulate("prod")) + reduction_names("", "nanprod", nan_accumulation("prod", 1)) +
                   names({"numpy.multiply.reduce"},
                         "(array -> self, axis -> dim = 0, dtype=None, out=None, keepdims -> keepdim = False, initial=None, where=True)",
                         accumulate("prod"));
  ops[0].samples = [] { return reduction_samples(kAll); };
  ops[1].grad = written(gradients::prod);
  ops[1].samples = [] { return reduction_samples(kAll, Fill::unit); };
  name_extremes(ops);
  ops[2].aliases = ops[2].aliases + reduction_names("nanmean", "nanmean", nan_mean) + loss_names();
  ops[3].aliases =
      ops[3].aliases + reduction_names("", "nanmax", nan_extreme("amax", -INFINITY)) + reduction_names("", "ptp", [](ForeignArguments& a) {
        const ir::ValueId x = a.tensor(a.value("self"));
        const ir::Attributes shape = reduction_attributes(a, x);
        return a.call("sub", {a.one("amax", {x}, shape), a.one("amin", {x}, shape)});
      });
  ops[4].aliases = ops[4].aliases + reduction_names("", "nanmin", nan_extreme("amin", INFINITY));
  return ops;
}

}  // namespace tenon::ops
