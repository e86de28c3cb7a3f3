// Tensors made from nothing but numbers: filled, counted, triangular.
#include <algorithm>
#include <array>
#include <cmath>

#include "core/ops/build/index_math.h"
#include "core/ops/notation/family.h"
#include "core/ops/notation/move.h"
#include "core/ops/size_questions.h"

#include <cstring>

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::Shape;

Shape size_of_result(const OpQuery& q) {
  const auto size = q.integers("size");
  for (const Dim& d : size) TENON_USER_CHECK(!d.is_constant() || d.constant() >= 0, "negative dimension {} in size", d.constant());
  return size;
}

/// An op of numbers alone, which may be asked for on any device.
Op creating(std::string name, std::string parameters) {
  Op op;
  op.name = std::move(name);
  op.schema = fmt::format("({}, *, ScalarType dtype, str? device=None) -> Tensor", parameters);
  op.traits.creates = true;
  return op;
}

/// An attribute that is an integer or a float, as a scalar of float64 or int64.
Scalar number_scalar(Scalars& s, const OpQuery& q, std::string_view name, double otherwise, DType dtype) {
  if (const ir::Attribute* a = q.find(name))
    if (const Dim* d = std::get_if<Dim>(a)) return s.convert(s.extent(*d), dtype);
  return s.constant(dtype, q.number(name, otherwise));
}

// ---- full

LoopBody full_loop(const OpQuery& q) {
  return elementwise(size_of_result(q), [&](Scalars& s) {
    const DType dtype = compute_type(q.dtype("dtype"));
    if (!q.literal(0)) return s.convert(s.load(0, q.type(0).dtype, {}), dtype);
    const ir::Literal& l = *q.literal(0);
    if (const bool* b = std::get_if<bool>(&l)) return s.constant(dtype, std::int64_t{*b});
    if (const double* d = std::get_if<double>(&l)) return s.constant(dtype, *d);
    return s.convert(s.extent(std::get<Dim>(l)), dtype);
  });
}

/// The dtype that a library gives a Python number: torch has a default float, NumPy has float64.
DType dtype_of_number(ForeignArguments& a, const ForeignArgument& x) {
  if (x.as<bool>()) return DType::b8;
  if (x.as<Dim>()) return DType::i64;
  const ir::ValueId* v = x.as<ir::ValueId>();
  if (!v) return a.default_float();
  const DType own = a.type(*v).dtype;
  if (a.numpy() || is_bool(own)) return own;  // torch takes the number that the tensor holds
  return is_float(own) ? a.default_float() : DType::i64;
}

/// On the device that the call names, else `there`: a tensor that holds the value says nothing about it, and is read where the result is made.
Values make_full(ForeignArguments& a, std::vector<Dim> size, ForeignArgument value, std::optional<DType> dtype, ir::Device there) {
  const DType t = dtype.value_or(dtype_of_number(a, value));
  there = a.device().value_or(there);
  ir::ValueId number = a.to_value(value);
  if (is_int(t)) a.require_represented(number, t);
  if (!a.type(number).is_host_scalar()) number = a.builder().to_device(number, there);
  a.builder().on(there);
  return {a.builder().cast(a.builder().one("full", {number}, {{"dtype", real_type(t)}, {"size", std::move(size)}}), t)};
}

/// torch.full, numpy.full.
Values full_adapt(ForeignArguments& a) {
  a.refuse({"requires_grad"});
  return make_full(a, a.integers("size"), a["fill_value"], a.dtype("dtype"), {});
}

Adapt filled(std::int64_t value) {
  return [value](ForeignArguments& a) {
    a.refuse({"requires_grad"});
    return make_full(a, a.integers("size"), {Dim(value)}, a.dtype("dtype").value_or(a.default_float()), {});
  };
}

Adapt filled_like(std::optional<std::int64_t> value) {
  return [value](ForeignArguments& a) {
    a.refuse({"requires_grad"});
    const ir::Type type = a.type(a.value("self"));
    const auto size = a.given("shape") ? a.integers("shape") : type.shape;
    return make_full(a, size, value ? ForeignArgument{Dim(*value)} : a["fill_value"], a.dtype("dtype").value_or(type.dtype), type.device);
  };
}

Adapt new_filled(std::optional<std::int64_t> value) {
  return [value](ForeignArguments& a) {
    a.refuse({"requires_grad"});
    const ir::Type self = a.type(a.value("self"));
    return make_full(a, a.integers("size"), value ? ForeignArgument{Dim(*value)} : a["fill_value"], a.dtype("dtype").value_or(self.dtype), self.device);
  };
}

/// torch.tensor, numpy.array and the like.
Values tensor_adapt(ForeignArguments& a) {
  a.refuse({"requires_grad"});
  ir::ValueId x = a.tensor_of(a["data"]);
  if (const auto dtype = a.dtype("dtype")) a.require_represented(a["data"], *dtype), x = a.builder().cast(x, *dtype);
  if (const auto device = a.device()) x = a.builder().to_device(x, *device);
  const ir::ValueId* given = a["data"].as<ir::ValueId>();
  if (a.numpy() && !a.flag("copy", true) && !(given && *given == x)) throw Exception(Code::unsupported, "copy=False of what has to be copied, at which NumPy raises");
  if (given && a.flag("copy", false)) x = a.one("clone", {x});
  const Shape shape = a.type(x).shape;
  const std::int64_t missing = a.numpy() && a.given("ndmin") ? a.constant("ndmin") - static_cast<std::int64_t>(shape.size()) : 0;
  if (missing <= 0) return {x};
  Shape wider(static_cast<std::size_t>(missing), Dim(1));
  wider.insert(wider.end(), shape.begin(), shape.end());
  return {reshape_to(a.builder(), x, wider)};
}

/// numpy.float64 and the like, called: a number of that type, or an array of such where an array is given.
Adapt scalar_of(DType dtype) {
  return [dtype](ForeignArguments& a) -> Values {
    const ir::ValueId x = a.tensor_of(a["data"]);
    const DType given = a.type(x).dtype;
    if (is_int(dtype) && !is_int(given) && !is_bool(given)) throw Exception(Code::unsupported, "an integer of a float, at which NumPy raises where it is none");
    return {given == dtype ? a.one("clone", {x}) : a.builder().cast(x, dtype)};
  };
}

std::vector<Alias> scalar_names() {
  std::vector<Alias> all;
  for (const auto& [name, dtype] : {std::pair("numpy.bool", DType::b8), std::pair("numpy.int64", DType::i64), std::pair("numpy.float32", DType::f32), std::pair("numpy.float64", DType::f64)})
    all = std::move(all) + names({name}, "(data)", scalar_of(dtype));
  return all;
}

/// torch.Tensor.new_tensor: a copy of the data, of the tensor's own dtype where none is given.
Values new_tensor_adapt(ForeignArguments& a) {
  a.refuse({"requires_grad"});
  const ir::Type self = a.type(a.value("self"));
  const ir::ValueId made = a.builder().cast(a.tensor_of(a["data"]), a.dtype("dtype").value_or(self.dtype));
  const ir::ValueId x = a.builder().to_device(made, a.device().value_or(self.device));
  return {a["data"].as<ir::ValueId>() ? a.one("clone", {x}) : x};
}

std::vector<Alias> full_names() {
  const std::string torch = "*, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False)";
  const std::string like = "memory_format=None, " + torch.substr(3);
  return scalar_names() + names({"torch.full"}, "(size, fill_value, " + torch, full_adapt) +
         names({"torch.zeros"}, "(*size, " + torch.substr(3), filled(0)) + names({"torch.ones"}, "(*size, " + torch.substr(3), filled(1)) +
         names({"torch.zeros_like", "torch.empty_like"}, "(self, *, " + like, filled_like(0)) +
         names({"torch.ones_like"}, "(self, *, " + like, filled_like(1)) +
         names({"torch.full_like"}, "(self, fill_value, *, " + like, filled_like({})) +
         names({"torch.Tensor.new_zeros", "torch.Tensor.new_empty"}, "(self, *size, " + torch.substr(3), new_filled(0)) +
         names({"torch.Tensor.new_ones"}, "(self, *size, " + torch.substr(3), new_filled(1)) +
         names({"torch.Tensor.new_full"}, "(self, size, fill_value, " + torch, new_filled({})) +
         names({"torch.Tensor.new_tensor"}, "(self, data, *, dtype=None, device=None, requires_grad=False)", new_tensor_adapt) +
         names({"torch.tensor", "torch.as_tensor", "torch.scalar_tensor"},
               "(data, dtype=None, device=None, requires_grad=False, pin_memory=False)", tensor_adapt) +
         names({"numpy.array", "numpy.asarray", "numpy.asanyarray", "numpy.ascontiguousarray"},
               "(a -> data, dtype=None, order=None, *, copy=None, subok=False, ndmin=0, device=None, like=None)", tensor_adapt) +
         names({"numpy.full"}, "(shape -> size, fill_value, dtype=None, order='C', *, device=None, like=None)", full_adapt) +
         names({"numpy.zeros", "numpy.empty"}, "(shape -> size, dtype=None, order='C', *, device=None, like=None)", filled(0)) +
         names({"numpy.ones"}, "(shape -> size, dtype=None, order='C', *, device=None, like=None)", filled(1)) +
         names({"numpy.zeros_like", "numpy.empty_like"}, "(a -> self, dtype=None, order='K', subok=True, shape=None, *, device=None)",
               filled_like(0)) +
         names({"numpy.ones_like"}, "(a -> self, dtype=None, order='K', subok=True, shape=None, *, device=None)", filled_like(1)) +
         names({"numpy.full_like"}, "(a -> self, fill_value, dtype=None, order='K', subok=True, shape=None, *, device=None)",
               filled_like({}));
}

Op full_op() {
  Op op = creating("full", "Tensor fill_value, int[] size");
  op.aliases = full_names();
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 1, 1);
    TENON_USER_CHECK(q.type(0).rank() == 0, "the value must be a number or a 0-d tensor");
    return infer::created(q, q.dtype("dtype"), size_of_result(q));
  };
  op.loop = full_loop;
  op.samples = [] {
    std::vector<Sample> all;
    for (DType t : {DType::b8, DType::u8, DType::i32, DType::i64, DType::f16, DType::f32, DType::f64})
      all.push_back({.name = std::string(name_of(t)),
                     .operands = {{.literal = ir::Literal(Dim(3))}},
                     .attributes = {{"dtype", t}, {"size", std::vector<Dim>{2, 5}}}});
    all.push_back({.name = "scalar",
                   .operands = {{.literal = ir::Literal(2.5)}},
                   .attributes = {{"dtype", DType::f32}, {"size", std::vector<Dim>{}}}});
    all.push_back(
        {.name = "from_tensor", .operands = {{.shape = {}}}, .attributes = {{"dtype", DType::f64}, {"size", std::vector<Dim>{3, 0}}}});
    all.push_back(
        {.name = "cast_from_tensor", .operands = {{.shape = {}}}, .attributes = {{"dtype", DType::i32}, {"size", std::vector<Dim>{4}}}});
    return all;
  };
  return op;
}

// ---- arange, linspace

Dim count_of(const OpQuery& q) {
  const auto integer = [&](std::string_view name) { return q.find(name) == nullptr || std::holds_alternative<Dim>(*q.find(name)); };
  if (integer("start") && integer("end") && integer("step")) {
    const Dim start = q.integer("start", Dim(0)), end = q.integer("end");
    const std::int64_t step = q.constant_integer("step", 1);
    TENON_USER_CHECK(step != 0, "step must be nonzero");
    const Dim pace(step), back = Dim(0) - pace;
    const Dim count = step > 0 ? floor_div(end - start + pace - Dim(1), pace) : floor_div(start - end + back - Dim(1), back);
    return infer::at_least(q.graph(), count, Dim(0));
  }
  const double step = q.number("step", 1);
  TENON_USER_CHECK(step != 0, "step must be nonzero");
  const double count = std::ceil((q.number("end") - q.number("start", 0)) / step);
  TENON_USER_CHECK(count < 0x1p62, "arange: from {} to {} in steps of {} is no number of elements", q.number("start", 0), q.number("end"), step);
  return Dim(count > 0 ? static_cast<std::int64_t>(count) : 0);
}

LoopBody arange_loop(const OpQuery& q) {
  return elementwise({count_of(q)}, [&](Scalars& s) {
    const DType result = compute_type(q.dtype("dtype"));
    const DType steps = is_float(result) ? DType::f64 : DType::i64;
    const Scalar offset = s.mul(s.convert(s.loop_index(0), steps), number_scalar(s, q, "step", 1, steps));
    return s.convert(s.add(number_scalar(s, q, "start", 0, steps), offset), result);
  });
}

ir::Attribute number_attribute(const ForeignArgument& x, ir::Attribute otherwise) {
  if (x.is_none()) return otherwise;
  if (const bool* b = x.as<bool>()) return Dim(*b);
  if (const Dim* d = x.as<Dim>()) return *d;
  if (const double* d = x.as<double>()) return *d;
  throw Exception(Code::unsupported, "a tensor where a number is expected");
}

/// A float that is an integer, as one: what is counted and added with it is exact.
ir::Attribute as_integer(const ir::Attribute& x) {
  const double* number = std::get_if<double>(&x);
  const bool whole = number && std::abs(*number) < 0x1p50 && *number == std::floor(*number) && !(*number == 0 && std::signbit(*number));
  return whole ? ir::Attribute(Dim(static_cast<std::int64_t>(*number))) : x;
}

/// torch refuses a range that its step leads away from.
void require_direction(const ir::Graph& graph, const Dim& start, const Dim& end, const Dim& step) {
  if (!step.is_constant() || step == Dim(0)) return;
  TENON_USER_CHECK(infer::may_be_positive_or_0(graph, step.constant() > 0 ? end - start : start - end), "upper bound and lower bound inconsistent with step sign");
}

Values arange_adapt(ForeignArguments& a) {
  a.refuse({"requires_grad"});
  const bool one = !a.given("end");
  ir::Attribute start = one ? ir::Attribute(Dim(0)) : number_attribute(a["start"], Dim(0));
  ir::Attribute end = number_attribute(one ? a["start"] : a["end"], Dim(0)), step = number_attribute(a["step"], Dim(1));
  const auto are_integers = [&] { return std::ranges::all_of(std::array{&start, &end, &step}, [](const ir::Attribute* x) { return std::holds_alternative<Dim>(*x); }); };
  const DType dtype = a.dtype("dtype").value_or(are_integers() ? DType::i64 : a.default_float());
  if (a.numpy() && is_float(dtype))
    for (ir::Attribute* x : {&start, &end, &step}) *x = as_integer(*x);
  const bool integers = are_integers();
  if (integers && !a.numpy()) require_direction(a.graph(), std::get<Dim>(start), std::get<Dim>(end), std::get<Dim>(step));
  if (a.numpy() && !integers) {  // NumPy steps by the difference of its first two elements
    const auto number = [](const ir::Attribute& x) {
      return std::holds_alternative<double>(x) ? std::get<double>(x) : static_cast<double>(std::get<Dim>(x).constant());
    };
    const double first = number(start), count = std::ceil((number(end) - first) / number(step)), stride = (first + number(step)) - first;
    step = stride;
    end = first + (count - 0.5) * stride;
  }
  return a.call("arange", {}, {{"dtype", dtype}, {"end", end}, {"start", start}, {"step", step}});
}

Op arange_op() {
  Op op = creating("arange", "Scalar start, Scalar end, Scalar step=1");
  op.aliases =
      names({"torch.arange"},
            "(start, end=None, step=None, *, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False)",
            arange_adapt) +
      names({"numpy.arange"}, "(start, stop -> end = None, step=None, dtype=None, *, device=None, like=None)", arange_adapt);
  op.infer = [](const OpQuery& q) -> Result<infer::Types> { return infer::created(q, q.dtype("dtype"), {count_of(q)}); };
  op.loop = arange_loop;
  op.samples = [] {
    const auto sample = [](std::string name, ir::Attribute start, ir::Attribute end, ir::Attribute step, DType t) {
      return Sample{.name = std::move(name), .attributes = {{"dtype", t}, {"end", end}, {"start", start}, {"step", step}}};
    };
    return std::vector<Sample>{sample("count", Dim(0), Dim(7), Dim(1), DType::i64),  sample("steps", Dim(3), Dim(20), Dim(4), DType::i32),
                               sample("down", Dim(9), Dim(-2), Dim(-3), DType::i64), sample("empty", Dim(3), Dim(1), Dim(1), DType::f32),
                               sample("fractions", 0.5, 3.0, 0.25, DType::f32),      sample("float64", -1.0, 1.0, 0.1, DType::f64)};
  };
  return op;
}

/// ATen's linspace: counts from both ends, so that it is symmetric and hits `end`.
LoopBody linspace_loop(const OpQuery& q) {
  const Dim steps = q.integer("steps");
  return elementwise({steps}, [&](Scalars& s) {
    const Scalar start = number_scalar(s, q, "start", 0, DType::f64), end = number_scalar(s, q, "end", 0, DType::f64);
    const Scalar i = s.loop_index(0), count = s.extent(steps);
    const Scalar gaps = s.convert(s.maximum(s.sub(count, s.extent(1)), s.extent(1)), DType::f64);
    const Scalar step = s.div(s.sub(end, start), gaps);
    const Scalar forward = s.add(start, s.mul(step, s.convert(i, DType::f64)));
    const Scalar backward = s.sub(end, s.mul(step, s.convert(s.sub(s.sub(count, i), s.extent(1)), DType::f64)));
    const Scalar lower_half = s.logical_or(s.lt(i, s.binary(Primitive::floor_div, count, s.extent(2))), s.eq(count, s.extent(1)));
    return s.convert(s.select(lower_half, forward, backward), compute_type(q.dtype("dtype")));
  });
}

/// numpy.linspace counts from its start alone, and ends with its end.
ir::ValueId numpy_linspace(ForeignArguments& a, const ir::Attribute& start, const ir::Attribute& end, const Dim& steps, bool to_the_end) {
  NodeBuilder& b = a.builder();
  const auto number = [&](const ir::Attribute& x) { return std::holds_alternative<Dim>(x) ? a.tensor(b.literal(std::get<Dim>(x)), DType::f64) : b.cast(b.literal(std::get<double>(x)), DType::f64); };
  const ir::ValueId first = number(start), last = number(end), gaps = b.literal(max(to_the_end ? steps - Dim(1) : steps, Dim(1)));
  const ir::ValueId step = b.one("div", {b.one("sub", {last, first}), b.cast(gaps, DType::f64)});
  const ir::ValueId place = b.one("arange", {}, {{"dtype", DType::i64}, {"end", steps}, {"start", Dim(0)}, {"step", Dim(1)}});
  const ir::ValueId counted = b.one("add", {b.one("mul", {b.cast(place, DType::f64), step}), first});
  const ir::ValueId all = to_the_end ? b.one("where", {b.one("eq", {place, gaps}), last, counted}) : counted;
  const DType dtype = a.dtype("dtype").value_or(DType::f64);
  return b.cast(is_int(dtype) ? b.one("floor", {all}) : all, dtype);
}

Values linspace_adapt(ForeignArguments& a) {
  a.refuse({"requires_grad", "retstep"});
  if (a.is_tensor("start") || a.is_tensor("end")) throw Exception(Code::unsupported, "linspace between tensors");
  const Dim steps = a.integer("steps", Dim(50));
  const auto bound = [&](std::string_view name) -> ir::Attribute {
    const ForeignArgument number = a[name];
    const Dim* varying = number.as<Dim>();
    return varying && !varying->is_constant() ? ir::Attribute(*varying) : a.number(name, 0);
  };
  ir::Attribute start = bound("start"), end = bound("end");
  if (a.numpy()) return {numpy_linspace(a, start, end, steps, a.flag("endpoint", true))};
  return a.call("linspace", {}, {{"dtype", a.dtype("dtype").value_or(a.default_float())}, {"end", std::move(end)}, {"start", std::move(start)}, {"steps", steps}});
}

Op linspace_op() {
  Op op = creating("linspace", "Scalar start, Scalar end, int steps");
  op.aliases =
      names({"torch.linspace"},
            "(start, end, steps, *, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False)",
            linspace_adapt) +
      names({"numpy.linspace"}, "(start, stop -> end, num -> steps = 50, endpoint=True, retstep=False, dtype=None, axis=0, *, device=None)",
            linspace_adapt);
  op.infer = [](const OpQuery& q) -> Result<infer::Types> { return infer::created(q, q.dtype("dtype"), {q.integer("steps")}); };
  op.loop = linspace_loop;
  op.samples = [] {
    std::vector<Sample> all;
    for (std::int64_t steps : {0, 1, 2, 11})
      all.push_back({.name = fmt::format("{}_steps", steps),
                     .attributes = {{"dtype", DType::f32}, {"end", 4.5}, {"start", -1.5}, {"steps", Dim(steps)}}});
    return all;
  };
  return op;
}

// ---- eye, triangles

Op eye_op() {
  Op op = creating("eye", "int n, int m, int k=0");
  const Adapt adapt = [](ForeignArguments& a) {
    a.refuse({"requires_grad"});
    const Dim n = a.integer("n");
    return a.call(
        "eye", {},
        {{"dtype", a.dtype("dtype").value_or(a.default_float())}, {"k", a.integer("k", Dim(0))}, {"m", a.integer("m", n)}, {"n", n}});
  };
  op.aliases =
      names({"torch.eye"}, "(n, m=None, *, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False)", adapt) +
      names({"numpy.eye"}, "(N -> n, M -> m = None, k=0, dtype=None, order='C', *, device=None, like=None)", adapt) +
      names({"numpy.identity"}, "(n, dtype=None, *, like=None)", adapt);
  op.infer = [](const OpQuery& q) -> Result<infer::Types> { return infer::created(q, q.dtype("dtype"), {q.integer("n"), q.integer("m")}); };
  op.loop = [](const OpQuery& q) {
    return elementwise({q.integer("n"), q.integer("m")}, [&](Scalars& s) {
      const Scalar on_diagonal = s.eq(IndexMath(s).add(s.loop_index(0), q.integer("k", Dim(0))), s.loop_index(1));
      return s.convert(on_diagonal, compute_type(q.dtype("dtype")));
    });
  };
  op.samples = [] {
    return std::vector<Sample>{{.name = "square", .attributes = {{"dtype", DType::f32}, {"k", Dim(0)}, {"m", Dim(4)}, {"n", Dim(4)}}},
                               {.name = "wide", .attributes = {{"dtype", DType::i64}, {"k", Dim(1)}, {"m", Dim(5)}, {"n", Dim(3)}}}};
  };
  return op;
}

/// Keeps one triangle of the last two dimensions: columns minus rows at most (tril) or at least (triu) the diagonal.
Op triangle(std::string name, Primitive keeps) {
  Op op;
  op.schema = "(Tensor self, int diagonal=0) -> Tensor";
  op.traits.layout = ResultLayout::row_major;
  op.aliases = torch_names(name) + names({"numpy." + name}, "(m -> self, k -> diagonal = 0)");
  op.name = std::move(name);
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 1, 1);
    TENON_USER_CHECK(q.type(0).rank() >= 2, "takes a tensor of at least 2 dimensions, not {}", q.type(0).rank());
    return infer::one(q, q.type(0).dtype, q.type(0).shape);
  };
  op.loop = [keeps](const OpQuery& q) {
    const std::size_t rank = q.type(0).rank();
    return elementwise(q.type(0).shape, [&](Scalars& s) {
      const auto at = IndexMath(s).loops(rank);
      const Scalar kept = s.binary(keeps, s.sub(at[rank - 1], at[rank - 2]), s.extent(q.integer("diagonal", Dim(0))));
      const DType dtype = compute_type(q.type(0).dtype);
      return s.select(kept, s.load(0, dtype, at), s.constant(dtype, std::int64_t{0}));
    });
  };
  op.samples = [] {
    std::vector<Sample> all;
    for (std::int64_t k : {-2, 0, 1})
      for (DType t : {DType::f32, DType::i64, DType::b8})
        all.push_back({.name = fmt::format("{}_{}", name_of(t), k),
                       .operands = {{.dtype = t, .shape = {2, 4, 5}}},
                       .attributes = {{"diagonal", Dim(k)}}});
    return all;
  };
  return op;
}

/// The bytes of a constant of the graph. Hosts bind constants directly; this is for whoever runs node by node.
Op constant_op() {
  Op op;
  op.name = "constant";
  op.schema = "(int index) -> Tensor";
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    const auto index = static_cast<std::size_t>(q.constant_integer("index"));
    TENON_USER_CHECK(index < q.graph().constants().size(), "there is no constant {}", index);
    return infer::Types{q.graph().constants()[index].type};
  };
  op.kernel = [](KernelCall& call) {
    const ir::Constant& constant = call.query.graph().constants()[static_cast<std::size_t>(call.query.constant_integer("index"))];
    TensorView& out = call.outputs[0];
    if (std::ranges::find(out.shape, 0) != out.shape.end()) return;
    TENON_USER_CHECK(constant.data, "the bytes of constant '{}' are not there", constant.name);
    std::size_t bytes = size_of(constant.type.dtype);
    for (std::int64_t n : out.shape) bytes *= static_cast<std::size_t>(n);
    if (out.dtype == constant.type.dtype)
      std::memcpy(out.data, constant.data, bytes);
    else
      throw Exception(Code::unsupported, "a constant in another precision");
  };
  op.no_grad_reason = "it has no operands";
  op.samples = [] { return std::vector<Sample>{}; };
  return op;
}

}  // namespace

Family creation_ops() {
  return {constant_op(), full_op(), arange_op(), linspace_op(), eye_op(), triangle("tril", Primitive::le), triangle("triu", Primitive::ge)};
}

}  // namespace tenon::ops
