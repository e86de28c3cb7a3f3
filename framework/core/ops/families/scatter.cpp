// Writing elements at places that other tensors or bounds give: the result is a changed copy of self.
#include "core/ops/gradients/gradients.h"
#include "core/ops/notation/index_rules.h"
#include "core/ops/notation/masked_write.h"
#include "core/ops/notation/move.h"
#include "core/ops/size_questions.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::Shape;

/// What happens to the old element: overwritten, or combined with the value.
ScalarProgram combination(DType t, std::optional<Primitive> combine) {
  Scalars s;
  const Scalar value = s.parameter(1, t);
  if (combine == Primitive::add && is_bool(t)) combine = Primitive::logical_or;
  if (combine == Primitive::mul && is_bool(t)) combine = Primitive::logical_and;
  s.result(combine ? s.binary(*combine, s.parameter(0, t), value) : value);
  return s.take();
}

std::optional<Primitive> combine_named(const std::string& word) {
  if (word.empty()) return std::nullopt;
  if (word == "sum" || word == "add") return Primitive::add;
  if (word == "prod" || word == "multiply") return Primitive::mul;
  if (word == "amax") return Primitive::maximum;
  if (word == "amin") return Primitive::minimum;
  throw Exception(error(Code::invalid_argument, "reduce argument must be either sum, prod, amax or amin, got {}", word));
}

Op changed_copy(std::string name, std::string schema, std::vector<Alias> aliases, std::function<void(const OpQuery&)> check,
                std::function<ScatterBody(const OpQuery&)> body) {
  Op op;
  op.name = std::move(name);
  op.schema = std::move(schema);
  op.aliases = std::move(aliases);
  op.traits.may_raise = true;
  op.infer = [check](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 3, 64);
    check(q);
    return infer::one(q, q.type(0).dtype, q.type(0).shape);
  };
  op.scatter = std::move(body);
  return op;
}

void require_value_dtype(const OpQuery& q, std::size_t operand) {
  TENON_USER_CHECK(q.type(operand).dtype == q.type(0).dtype, "the values are {}, self is {}; cast them", name_of(q.type(operand).dtype),
                   name_of(q.type(0).dtype));
}

// ---- scatter: one index an element

ScatterBody scatter_body(const OpQuery& q, std::optional<Primitive> combine) {
  const DType t = compute_type(q.type(0).dtype);
  Scalars s;
  auto at = IndexMath(s).loops(q.type(1).rank());
  const Scalar value = s.load(2, q.type(2).dtype, at), index = s.convert(s.load(1, q.type(1).dtype, at), DType::i64);
  if (!at.empty()) at[dim_of(q)] = index;
  for (Scalar i : at) s.result(i);
  s.result(value);
  return {.base = 0, .extents = q.type(1).shape, .target = s.take(), .combine = combination(t, combine), .ordered = !combine};
}

void check_scatter(const OpQuery& q) {
  combine_named(q.text("reduce", ""));
  require_index_dtype(q, 1);
  require_value_dtype(q, 2);
  TENON_USER_CHECK(q.type(0).rank() == q.type(1).rank() && q.type(1).rank() == q.type(2).rank(),
                   "self, index and src must have the same number of dimensions");
  const std::size_t dim = dim_of(q);
  for (std::size_t d = 0; d < q.type(1).rank(); ++d) {
    const Dim& n = q.type(1).shape[d];
    TENON_USER_CHECK(d == dim || infer::may_be_positive_or_0(q.graph(), q.type(0).shape[d] - n), "index is larger than self in dimension {}", d);
    TENON_USER_CHECK(infer::may_be_positive_or_0(q.graph(), q.type(2).shape[d] - n), "index is larger than src in dimension {}", d);
  }
}

/// ATen rounds a sum of half floats once. Of operands of two dtypes, which are refused, that of self.
DType dtype_of_sums(DType self, DType source) { return self == source ? compute_type(self) : self; }

/// A number as src is that number everywhere, in self's dtype.
Values scatter_adapt(ForeignArguments& a, std::string reduce) {
  const ir::ValueId self = a.value("self"), index = a.value("index");
  const ForeignArgument& source = a.given("src") ? a["src"] : a["value"];
  ir::ValueId src = a.to_value(source);
  if (a.graph().value(src).kind == ir::ValueKind::literal)
    src = a.builder().one("full", {src}, {{"dtype", a.type(self).dtype}, {"size", a.type(index).shape}});
  const Shape shape = a.type(self).shape;
  ir::Attributes attributes{{"dim", Dim(a.dim("dim", shape.size()))}};
  if (!reduce.empty()) attributes.push_back({"reduce", reduce});
  const DType t = a.type(self).dtype, summed = reduce == "sum" ? dtype_of_sums(t, a.type(src).dtype) : t;
  const auto vector = [&](ir::ValueId x) { return as_vector(a.builder(), x); };
  const auto wide = [&](ir::ValueId x) { return summed == t ? vector(x) : a.builder().cast(vector(x), summed); };
  const ir::ValueId all = a.one("scatter", {wide(self), vector(index), wide(src)}, std::move(attributes));
  return {a.builder().cast(reshape_to(a.builder(), all, shape), t)};
}

/// torch.scatter has words of its own for the two reductions that it knows.
std::string reduction_of_scatter(const std::string& word) {
  if (word == "add") return "sum";
  if (word == "multiply") return "prod";
  if (!word.empty()) throw Exception(error(Code::invalid_argument, "reduce argument must be either add or multiply."));
  return word;
}

Op scatter_op() {
  const Adapt plain = [](ForeignArguments& a) { return scatter_adapt(a, reduction_of_scatter(a.text("reduce", ""))); };
  const Adapt sum = [](ForeignArguments& a) { return scatter_adapt(a, "sum"); };
  Op op = changed_copy("scatter", "(Tensor self, Tensor index, Tensor src, int dim, str reduce='', bool include_self=True) -> Tensor",
                       torch_names("scatter", "(self, dim, index, src=None, *, value=None, reduce=None)", plain) +
                           torch_names("scatter_add", "(self, dim, index, src)", sum) +
                           selection_names(),
                       check_scatter, [](const OpQuery& q) { return scatter_body(q, combine_named(q.text("reduce", ""))); });
  op.grad = written(gradients::scatter);
  op.samples = [] {
    std::vector<Sample> all;
    all.push_back({.name = "product_of_zeros",
                   .operands = {{.shape = {2, 5}, .fill = Fill::index, .bound = 2},
                                {.dtype = DType::i64, .shape = {3, 5}, .fill = Fill::index, .bound = 2},
                                {.shape = {3, 5}, .fill = Fill::index, .bound = 3}},
                   .attributes = {{"dim", Dim(0)}, {"reduce", std::string("prod")}}});
    for (DType t : {DType::f32, DType::i64, DType::f16})
      for (const char* reduce : {"sum", "prod", "amax", "amin"})
        all.push_back({.name = fmt::format("{}_{}", name_of(t), reduce),
                       .operands = {{.dtype = t, .shape = {4, 5}, .fill = Fill::unit},
                                    {.dtype = DType::i64, .shape = {3, 5}, .fill = Fill::index, .bound = 4},
                                    {.dtype = t, .shape = {3, 6}, .fill = Fill::unit}},
                       .attributes = {{"dim", Dim(0)}, {"reduce", std::string(reduce)}},
                       .tolerance = 4});
    for (DType t : {DType::f32, DType::b8})
      all.push_back({.name = fmt::format("{}_last", name_of(t)),
                     .operands = {{.dtype = t, .shape = {3, 5}},
                                  {.dtype = DType::i64, .shape = {3, 4}, .fill = Fill::index, .bound = 5},
                                  {.dtype = t, .shape = {3, 4}}},
                     .attributes = {{"dim", Dim(-1)}, {"reduce", std::string()}}});
    return all;
  };
  return op;
}

// ---- index_add, index_copy: one index a slice

ScatterBody slices_body(const OpQuery& q, std::optional<Primitive> combine) {
  const DType t = compute_type(q.type(0).dtype);
  Scalars s;
  auto at = IndexMath(s).loops(q.type(2).rank());
  Scalar value = s.load(2, q.type(2).dtype, at);
  if (const double alpha = q.number("alpha", 1); alpha != 1) value = s.mul(value, s.like(value, alpha));
  if (!at.empty()) at[dim_of(q)] = read_index(s, q, 1, std::span(at).subspan(dim_of(q), 1));
  for (Scalar i : at) s.result(i);
  s.result(value);
  return {.base = 0, .extents = q.type(2).shape, .target = s.take(), .combine = combination(t, combine), .ordered = !combine};
}

void check_slices(const OpQuery& q) {
  require_index_dtype(q, 1);
  require_value_dtype(q, 2);
  TENON_USER_CHECK(q.type(1).rank() <= 1, "the index must be a vector, not {}-D", q.type(1).rank());
  TENON_USER_CHECK(q.type(0).rank() == q.type(2).rank(), "self and source must have the same number of dimensions");
  const std::size_t dim = dim_of(q);
  for (std::size_t d = 0; d < q.type(0).rank(); ++d)
    infer::require_equal(q.graph(), q.type(2).shape[d], d == dim ? ir::product(q.type(1).shape) : q.type(0).shape[d],
                         fmt::format("sizes of dimension {} of source", d));
}

/// Slices of a tensor without dimensions are its one element.
Values slices_adapt(ForeignArguments& a, const std::string& name, bool combines) {
  const Shape shape = a.type(a.value("self")).shape;
  if (a.type(a.value("source")).rank() != shape.size()) throw Exception(Code::unsupported, "slices of another number of dimensions");
  const Dim dim(a.dim("dim", shape.size()));
  ir::Attributes attributes;
  if (combines) attributes.emplace_back("alpha", a.number("alpha", 1));
  attributes.emplace_back("dim", dim);
  const DType t = a.type(a.value("self")).dtype, summed = combines ? dtype_of_sums(t, a.type(a.value("source")).dtype) : t;
  const auto vector = [&](const char* parameter) { return as_vector(a.builder(), a.value(parameter)); };
  const auto wide = [&](const char* parameter) { return summed == t ? vector(parameter) : a.builder().cast(vector(parameter), summed); };
  return {a.builder().cast(reshape_to(a.builder(), a.one(name, {wide("self"), vector("index"), wide("source")}, std::move(attributes)), shape), t)};
}

Op slices_op(std::string name, std::string schema_end, std::string signature, std::optional<Primitive> combine) {
  Op op = changed_copy(name, "(Tensor self, Tensor index, Tensor source, int dim" + schema_end + ") -> Tensor",
                       torch_names(name, signature, [name, combine](ForeignArguments& a) { return slices_adapt(a, name, combine.has_value()); }), check_slices, [combine](const OpQuery& q) { return slices_body(q, combine); });
  op.samples = [combine] {
    std::vector<Sample> all;
    for (DType t : {DType::f32, DType::i64, DType::f16})
      all.push_back({.name = std::string(name_of(t)),
                     .operands = {{.dtype = t, .shape = {4, 5}},
                                  {.dtype = DType::i64, .shape = {6}, .fill = Fill::index, .bound = 5},
                                  {.dtype = t, .shape = {4, 6}}},
                     .attributes = {{"dim", Dim(1)}},
                     .tolerance = 4});
    if (combine)
      all.push_back({.name = "scaled",
                     .operands = {{.shape = {4}}, {.dtype = DType::i64, .shape = {6}, .fill = Fill::index, .bound = 4}, {.shape = {6}}},
                     .attributes = {{"alpha", 2.5}, {"dim", Dim(0)}},
                     .tolerance = 4});
    return all;
  };
  return op;
}

// ---- index_put: advanced indexing

ScatterBody index_put_body(const OpQuery& q) {
  const AdvancedIndex where(q, 2);
  const DType t = compute_type(q.type(0).dtype);
  const bool accumulate = q.flag("accumulate");
  Scalars s;
  const auto at = IndexMath(s).loops(where.result.size());
  const auto target = where.place(s, q, 2);
  std::vector<Scalar> index;
  const Shape& shape = q.type(1).shape;
  for (std::size_t d = 0; d < shape.size(); ++d)
    index.push_back(shape[d] == Dim(1) ? s.constant(DType::i64, std::int64_t{0}) : at[at.size() - shape.size() + d]);
  const Scalar value = s.load(1, q.type(1).dtype, index);
  for (Scalar i : target) s.result(i);
  s.result(value);
  return {.base = 0,
          .extents = where.result,
          .target = s.take(),
          .combine = combination(t, accumulate ? std::optional(Primitive::add) : std::nullopt),
          .ordered = !accumulate};
}

/// torch.index_put with one mask, which is operand 2 and stands at entry `at` of the indices.
Values masked_put(ForeignArguments& a, const Values& operands, std::size_t at) {
  const ForeignList& list = *a["indices"].as<ForeignList>();
  for (std::size_t d = 0; d < list.size(); ++d)
    if (d != at && !list[d].is_none()) throw Exception(Code::unsupported, "index_put with a mask and other indices");
  const auto written = masked_write(a, operands[0], operands[2], at, operands[1], a.flag("accumulate"));
  if (!written) throw Exception(Code::unsupported, "index_put with this form of a mask and values");
  return {*written};
}

/// torch.index_put(self, (index or None, ...), values, accumulate).
Values index_put_adapt(ForeignArguments& a) {
  const ForeignList* list = a["indices"].as<ForeignList>();
  if (!list) throw Exception(Code::unsupported, "index_put with this form of indices");
  Values operands{a.value("self"), a.builder().cast(a.tensor(a.value("values")), a.type(a.value("self")).dtype)};
  std::vector<Dim> dims;
  for (std::size_t d = 0; d < list->size(); ++d) {
    if ((*list)[d].is_none()) continue;
    operands.push_back(a.to_value((*list)[d]));
    if (is_bool(a.type(operands.back()).dtype) && operands.size() == 3) return masked_put(a, operands, d);
    dims.emplace_back(static_cast<std::int64_t>(d));
  }
  return a.call("index_put", operands, {{"accumulate", a.flag("accumulate")}, {"dims", dims}});
}

Op index_put_op() {
  Op op = changed_copy(
      "index_put", "(Tensor self, Tensor values, Tensor[] indices, int[] dims, bool accumulate=False) -> Tensor",
      torch_names("index_put", "(self, indices, values, accumulate=False)", index_put_adapt),
      [](const OpQuery& q) {
        require_value_dtype(q, 1);
        const AdvancedIndex where(q, 2);
        TENON_USER_CHECK(infer::broadcast(q.graph(), where.result, q.type(1).shape) == where.result,
                         "values of shape {} do not broadcast to {}", infer::text(q.graph(), q.type(1).shape),
                         infer::text(q.graph(), where.result));
      },
      index_put_body);
  op.aliases.push_back({"tenon._by_torch.index_put", "(self, values, indices, dims, accumulate=False)", {}});
  op.samples = [] {
    const auto index = [](std::vector<std::int64_t> shape, std::int64_t bound) {
      return SampleOperand{.dtype = DType::i64, .shape = std::move(shape), .fill = Fill::signed_index, .bound = bound};
    };
    const auto set = [](std::vector<Dim> dims, bool accumulate) {
      return ir::Attributes{{"accumulate", accumulate}, {"dims", std::move(dims)}};
    };
    std::vector<Sample> all;
    for (bool accumulate : {false, true}) {
      all.push_back({.name = "rows",
                     .operands = {{.shape = {4, 5}}, {.shape = {6, 5}}, index({6}, 4)},
                     .attributes = set({0}, accumulate),
                     .tolerance = 4});
      all.push_back({.name = "points",
                     .operands = {{.dtype = DType::i64, .shape = {4, 5}}, {.dtype = DType::i64, .shape = {}}, index({7}, 4), index({7}, 5)},
                     .attributes = set({0, 1}, accumulate)});
      all.push_back({.name = "apart",
                     .operands = {{.shape = {4, 5, 3}}, {.shape = {2, 5}}, index({2}, 4), index({2}, 3)},
                     .attributes = set({0, 2}, accumulate),
                     .tolerance = 4});
    }
    return all;
  };
  return op;
}

// ---- slice_scatter, select_scatter: a view is written

Op view_write(std::string name, std::string schema, std::vector<Alias> aliases, ShapeRule view,
              std::function<Scalar(Scalars&, const OpQuery&, std::vector<Scalar>&)> inside) {
  Op op;
  op.name = std::move(name);
  op.schema = std::move(schema);
  op.aliases = std::move(aliases);
  op.infer = [view](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 2, 2);
    require_value_dtype(q, 1);
    const Shape wanted = view(q);
    TENON_USER_CHECK(wanted.size() == q.type(1).rank(), "expected src to have a size equal to the written part: {} instead of {}",
                     infer::text(q.graph(), q.type(1).shape), infer::text(q.graph(), wanted));
    for (std::size_t d = 0; d < wanted.size(); ++d)
      infer::require_equal(q.graph(), wanted[d], q.type(1).shape[d], fmt::format("sizes of dimension {} of src", d));
    return infer::one(q, q.type(0).dtype, q.type(0).shape);
  };
  op.loop = [inside](const OpQuery& q) {
    return elementwise(q.type(0).shape, [&](Scalars& s) {
      const auto at = IndexMath(s).loops(q.type(0).rank());
      std::vector<Scalar> source = at;
      const Scalar written = inside(s, q, source);
      return s.load_if(written, 1, q.type(1).dtype, source, s.load(0, q.type(0).dtype, at));
    });
  };
  return op;
}

SliceBounds bounds_of(const OpQuery& q) {
  const Dim size = q.type(0).shape.at(real_dim(q));
  return slice_bounds(q.graph(), size, {q.integer("start", Dim(0)), q.integer("end", size), q.integer("step", Dim(1))});
}

Op slice_scatter_op() {
  Op op = view_write(
      "slice_scatter", "(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
      torch_names("slice_scatter"),
      [](const OpQuery& q) {
        const SliceBounds b = bounds_of(q);
        Shape shape = q.type(0).shape;
        shape[dim_of(q)] = slice_extent(b);
        return shape;
      },
      [](Scalars& s, const OpQuery& q, std::vector<Scalar>& at) {
        const SliceBounds b = bounds_of(q);
        IndexMath m(s);
        Scalar& i = at[dim_of(q)];
        Scalar written = s.logical_and(s.ge(i, m.of(b.start)), s.lt(i, m.of(b.end)));
        const Scalar offset = m.add(i, Dim(0) - b.start);
        if (!(b.step == Dim(1))) written = s.logical_and(written, s.eq(m.mod(offset, b.step), m.of(0)));
        i = m.floor_div(offset, b.step);
        return written;
      });
  op.written_part = [](const OpQuery& q) {
    const SliceBounds b = bounds_of(q);
    if (!b.step.is_constant()) return std::vector<ShownDim>();
    std::vector<ShownDim> part(q.type(0).rank());
    part[dim_of(q)] = {b.start, b.step.constant()};
    return part;
  };
  op.grad = written(gradients::slice_scatter);
  op.samples = [] {
    const auto slice = [](std::int64_t dim, std::int64_t start, std::int64_t end, std::int64_t step) {
      return ir::Attributes{{"dim", Dim(dim)}, {"end", Dim(end)}, {"start", Dim(start)}, {"step", Dim(step)}};
    };
    std::vector<Sample> all;
    for (DType t : {DType::f32, DType::b8, DType::f16}) {
      all.push_back({.name = fmt::format("rows_{}", name_of(t)),
                     .operands = {{.dtype = t, .shape = {6, 4}}, {.dtype = t, .shape = {3, 4}}},
                     .attributes = slice(0, 2, 5, 1)});
      all.push_back({.name = fmt::format("steps_{}", name_of(t)),
                     .operands = {{.dtype = t, .shape = {3, 8}}, {.dtype = t, .shape = {3, 3}}},
                     .attributes = slice(1, 1, 8, 3)});
    }
    return all;
  };
  return op;
}

Op select_scatter_op() {
  const auto index_of = [](const OpQuery& q) {
    const Dim index = q.integer("index");
    return infer::is_negative(q.graph(), index) ? index + q.type(0).shape.at(real_dim(q)) : index;
  };
  Op op = view_write(
      "select_scatter", "(Tensor self, Tensor src, int dim, int index) -> Tensor", torch_names("select_scatter"),
      [index_of](const OpQuery& q) {
        Shape shape = q.type(0).shape;
        const Dim index = index_of(q), &size = shape[real_dim(q)];
        TENON_USER_CHECK(infer::taken_positive_or_0(q.graph(), index) && infer::taken_positive_or_0(q.graph(), size - index - Dim(1)),
                         "select(): index {} out of range for a dimension of {}", infer::text(q.graph(), q.integer("index")), infer::text(q.graph(), size));
        shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(real_dim(q)));
        return shape;
      },
      [index_of](Scalars& s, const OpQuery& q, std::vector<Scalar>& at) {
        const Scalar written = s.eq(at[dim_of(q)], s.extent(index_of(q)));
        at.erase(at.begin() + static_cast<std::ptrdiff_t>(dim_of(q)));
        return written;
      });
  op.written_part = [index_of](const OpQuery& q) {
    std::vector<ShownDim> part(q.type(0).rank());
    part[dim_of(q)] = {.start = index_of(q), .kept = false};
    return part;
  };
  op.grad = written(gradients::select_scatter);
  op.samples = [] {
    std::vector<Sample> all;
    for (DType t : {DType::f32, DType::i64})
      for (std::int64_t index : {2, -1})
        all.push_back({.name = fmt::format("{}_{}", name_of(t), index),
                       .operands = {{.dtype = t, .shape = {4, 5}}, {.dtype = t, .shape = {4}}},
                       .attributes = {{"dim", Dim(1)}, {"index", Dim(index)}}});
    return all;
  };
  return op;
}

}  // namespace

Family scatter_ops() {
  return {scatter_op(),
          slices_op("index_add", ", *, Scalar alpha=1", "(self, dim, index, source, *, alpha=1)", Primitive::add),
          slices_op("index_copy", "", "(self, dim, index, source)", std::nullopt),
          index_put_op(),
          slice_scatter_op(),
          select_scatter_op()};
}

}  // namespace tenon::ops
