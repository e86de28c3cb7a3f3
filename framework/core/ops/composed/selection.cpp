// Reading and writing at chosen places in torch's words: scatters with every reduction, index_fill, take, put, masks. No op is declared
// here: the names belong to `scatter`.
#include <cmath>
#include <limits>

#include "core/ops/notation/formula.h"
#include "core/ops/notation/index_rules.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::Shape;
using V = ir::ValueId;

V filled_like(ForeignArguments& a, V x, double value) { return Formula(a).filled(value, a.type(x).dtype, a.type(x).shape); }

// ---- scatter_reduce, index_reduce

/// What leaves the other operand of a reduction as it is.
V identity_like(ForeignArguments& a, V x, const std::string& reduce) {
  const DType t = a.type(x).dtype;
  if (reduce == "sum" || reduce == "mean") return filled_like(a, x, 0);
  if (reduce == "prod") return filled_like(a, x, 1);
  const bool largest = reduce == "amin";
  if (is_float(t)) return filled_like(a, x, largest ? INFINITY : -INFINITY);
  const std::int64_t bits = static_cast<std::int64_t>(size_of(t)) * 8;
  if (t == DType::u8) return filled_like(a, x, largest ? 255 : 0);
  if (is_bool(t)) throw Exception(Code::unsupported, "extremes of bools scattered");
  const std::int64_t top = bits == 64 ? INT64_MAX : (std::int64_t{1} << (bits - 1)) - 1;
  return a.builder().full(Dim(largest ? top : -top - 1), t, a.type(x).shape);
}

struct Scattered {
  V self, index, src;
  Dim dim;
};

V scatter(ForeignArguments& a, const Scattered& s, const std::string& reduce, bool include_self = true) {
  ir::Attributes attributes{{"dim", s.dim}, {"reduce", reduce == "mean" ? std::string("sum") : reduce}};
  if (!include_self) attributes.insert(attributes.begin() + 1, {"include_self", false});  // self has been replaced by the identity
  return a.one("scatter", {s.self, s.index, s.src}, std::move(attributes));
}

V reducing_scatter(ForeignArguments& a, Scattered s, const std::string& reduce, bool include_self) {
  Formula f(a);
  if (const DType t = f.dtype(s.self); (reduce == "sum" || reduce == "mean") && is_reduced_float(t) && f.dtype(s.src) == t) {  // ATen rounds once
    s.self = f.cast(s.self, compute_type(t)), s.src = f.cast(s.src, compute_type(t));
    return f.cast(reducing_scatter(a, s, reduce, include_self), t);
  }
  if (reduce != "sum" && reduce != "prod" && reduce != "amax" && reduce != "amin" && reduce != "mean")
    throw Exception(error(Code::invalid_argument, "reduce argument must be either sum, prod, mean, amax or amin, got {}", reduce));
  const DType t = f.dtype(s.self);
  if (!include_self) s.self = scatter(a, {s.self, s.index, identity_like(a, s.src, reduce), s.dim}, "");
  const V total = scatter(a, s, reduce, include_self || (reduce != "amax" && reduce != "amin"));
  if (reduce != "mean") return total;
  const V counts = scatter(a, {filled_like(a, s.self, include_self ? 1 : 0), s.index, filled_like(a, s.src, 1), s.dim}, "sum");
  const V divisor = f.where(f.two("eq", counts, f.integer(0)), f.filled(1, t, {}), counts);
  return a.builder().one(is_float(t) ? "div" : "floor_divide", {total, divisor});
}

Values scatter_reduce(ForeignArguments& a) {
  const V self = a.value("self");
  const Shape shape = a.type(self).shape;
  const Dim dim(a.dim("dim", shape.size()));
  const V y = reducing_scatter(a, {as_vector(a.builder(), self), as_vector(a.builder(), a.value("index")), as_vector(a.builder(), a.value("src")), dim}, a.text("reduce", ""), a.flag("include_self", true));
  return {reshape_to(a.builder(), y, shape)};
}

/// The index of whole slices as one index an element.
Values index_reduce(ForeignArguments& a) {
  const Shape shape = a.type(a.value("self")).shape;
  const V self = as_vector(a.builder(), a.value("self")), index = as_vector(a.builder(), a.value("index")), source = as_vector(a.builder(), a.value("source"));
  const std::int64_t dim = a.dim("dim", a.type(self).rank());
  TENON_USER_CHECK(a.type(source).rank() == a.type(self).rank(), "index_reduce_(): source has {} dimensions, self {}", a.type(source).rank(), a.type(self).rank());
  Shape line(a.type(source).rank(), Dim(1)), slices = a.type(self).shape;
  slices[static_cast<std::size_t>(dim)] = line[static_cast<std::size_t>(dim)] = a.type(index).shape[0];
  for (std::size_t d = 0; d < slices.size(); ++d) infer::require_equal(a.graph(), a.type(source).shape[d], slices[d], fmt::format("sizes of dimension {} of source", d));
  const V wide = expand_to(a.builder(), reshape_to(a.builder(), index, line), a.type(source).shape);
  return {reshape_to(a.builder(), reducing_scatter(a, {self, wide, source, Dim(dim)}, a.text("reduce", ""), a.flag("include_self", true)), shape)};
}

// ---- index_fill, put, masked_scatter

V counted_from_end(ForeignArguments& a, V index, const Dim& size) {
  Formula f(a);
  return f.where(f.two("lt", index, f.integer(0)), f.add(index, a.builder().literal(size)), index);
}

Values index_fill(ForeignArguments& a) {
  const V self = a.value("self");
  const Shape shape = a.type(self).shape;
  const auto dim = static_cast<std::size_t>(a.dim("dim", shape.size()));
  const V x = as_vector(a.builder(), self);
  V index = as_vector(a.builder(), a.value("index"));
  index = counted_from_end(a, index, a.type(x).shape[dim]);
  V value = a.value("value");
  TENON_USER_CHECK(a.type(value).rank() == 0, "index_fill_ only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).", a.type(value).rank());
  Shape size = a.type(x).shape;
  size[dim] = a.type(index).shape[0];
  if (a.graph().value(value).kind != ir::ValueKind::literal) {  // a place that is named twice counts once in the gradient of the value
    const auto flags = [&](bool flag, Dim count) { return a.builder().full(flag, DType::b8, {count}); };
    const V chosen = a.one("index_copy", {flags(false, a.type(x).shape[dim]), index, flags(true, size[dim])}, {{"dim", Dim(0)}});
    Shape across(size.size(), Dim(1));
    across[dim] = a.type(x).shape[dim];
    return {reshape_to(a.builder(), a.builder().one("where", {reshape_to(a.builder(), chosen, across), a.builder().cast(value, a.type(self).dtype), x}), shape)};
  }
  const V source = a.builder().one("full", {value}, {{"dtype", a.type(self).dtype}, {"size", size}});
  return {reshape_to(a.builder(), a.one("index_copy", {x, index, source}, {{"dim", Dim(static_cast<std::int64_t>(dim))}}), shape)};
}

Values put(ForeignArguments& a) {
  const V self = a.value("self");
  const Shape shape = a.type(self).shape;
  const V flat = reshape_to(a.builder(), self, {ir::product(shape)}), index = reshape_to(a.builder(), a.value("index"), {ir::product(a.type(a.value("index")).shape)});
  const V source = reshape_to(a.builder(), a.value("source"), {ir::product(a.type(a.value("source")).shape)});
  infer::require_equal(a.graph(), a.type(index).shape[0], a.type(source).shape[0], "put_(): the numbers of elements of source and index");
  const V y = a.one("index_put", {flat, source, index}, {{"accumulate", a.flag("accumulate")}, {"dims", std::vector<Dim>{Dim(0)}}});
  return {reshape_to(a.builder(), y, shape)};
}

/// The elements of `source` in order where the mask is true: element k of source goes to the k-th true place.
Values masked_scatter(ForeignArguments& a) {
  Formula f(a);
  V self = a.value("self"), mask = a.value("mask");
  const V source = a.value("source");
  TENON_USER_CHECK(is_bool(f.dtype(mask)), "masked_scatter_ only supports boolean masks, but got mask with dtype {}", name_of(f.dtype(mask)));
  if (f.dtype(source) != f.dtype(self)) throw Exception(Code::unsupported, "masked_scatter between dtypes");
  const Shape shape = infer::broadcast(a.graph(), f.shape(self), f.shape(mask));
  mask = expand_to(a.builder(), mask, shape);
  self = expand_to(a.builder(), self, shape);
  const Dim count = ir::product(shape);
  if (ir::product(f.shape(source)) == Dim(0) || count == Dim(0)) throw Exception(Code::unsupported, "masked_scatter of nothing");
  const V places = a.one("cumsum", {reshape_to(a.builder(), mask, {count})}, {{"dim", Dim(0)}, {"dtype", DType::i64}});
  // Before the first true place the sum is 0: any element will do, none is taken.
  const V safe = a.one("clamp_min", {f.sub(places, f.integer(1)), f.integer(0)});
  const V taken = a.one("index_select", {reshape_to(a.builder(), source, {ir::product(f.shape(source))}), safe}, {{"dim", Dim(0)}});
  return {f.where(mask, reshape_to(a.builder(), taken, shape), self)};
}

/// Whether each element is among the others.
Values isin(ForeignArguments& a) {
  Formula f(a);
  Values both{a.tensor(a.value("self")), a.tensor(a.value("test_elements"))};
  a.promote(both, Promotion::common);
  Shape shape = f.shape(both[0]);
  shape.emplace_back(1);
  const V equal = f.two("eq", reshape_to(a.builder(), both[0], shape), reshape_to(a.builder(), both[1], {ir::product(f.shape(both[1]))}));
  const V found = a.one("any", {equal}, {{"dim", std::vector<Dim>{Dim(static_cast<std::int64_t>(shape.size()) - 1)}}, {"keepdim", false}});
  return {a.flag("invert") ? f.one("logical_not", found) : found};
}

/// aten._unsafe_masked_index: elements at indices where the mask is true, else a number; an index outside is not looked at there.
Values unsafe_masked_index(ForeignArguments& a) {
  Formula f(a);
  const ForeignList* list = a["indices"].as<ForeignList>();
  if (!list) throw Exception(Code::unsupported, "this form of indices");
  const V self = a.value("self"), mask = a.value("mask");
  Values operands{self};
  std::vector<Dim> dims;
  for (std::size_t d = 0; d < list->size(); ++d) {
    if ((*list)[d].is_none()) continue;
    const V index = a.to_value((*list)[d]);
    operands.push_back(f.where(mask, index, f.integer(0)));
    dims.emplace_back(static_cast<std::int64_t>(d));
  }
  if (dims.size() != a.type(self).rank() || ir::product(a.type(self).shape) == Dim(0)) throw Exception(Code::unsupported, "a masked index of some dimensions");
  const V taken = a.one("index", operands, {{"dims", dims}});
  V fill = a.value("fill");
  return {f.where(mask, taken, fill)};
}

}  // namespace

std::vector<Alias> selection_names() {
  return torch_names("scatter_reduce", "(self, dim, index, src, reduce, *, include_self=True)", scatter_reduce) +
         torch_names("index_reduce", "(self, dim, index, source, reduce, *, include_self=True)", index_reduce) +
         torch_names("index_fill", "(self, dim, index, value)", index_fill) + torch_names("put", "(self, index, source, accumulate=False)", put) +
         torch_names("masked_scatter", "(self, mask, source)", masked_scatter) +
         names({"torch.isin"}, "(elements -> self, test_elements, *, assume_unique=False, invert=False)", isin) +
         names({"numpy.isin"}, "(element -> self, test_elements, assume_unique=False, invert=False, *, kind=None)", isin) +
         names({"torch._unsafe_masked_index"}, "(self, mask, indices, fill)", unsafe_masked_index);
}

}  // namespace tenon::ops
