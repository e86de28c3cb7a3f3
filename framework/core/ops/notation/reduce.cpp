#include "core/ops/notation/reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/ops/size_questions.h"

namespace tenon::ops {

using ir::Dim;

ReductionShape::ReductionShape(const OpQuery& q) : count(1) {
  const ir::Shape& shape = q.type(0).shape;
  reduced = infer::wrapped_dims(q, shape.size());
  const bool keep = q.flag("keepdim");
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const bool gone = std::ranges::binary_search(reduced, d);
    if (!gone)
      result.push_back(shape[d]);
    else if (keep)
      result.push_back(Dim(1));
  }
  extents = result;
  for (std::size_t d : reduced) {
    extents.push_back(shape[d]);
    count = count * shape[d];
  }
}

ir::Literal degrees_of_freedom(const OpQuery& q) {
  const ReductionShape shape(q);
  if (const ir::Attribute* given = q.find("correction"))
    if (const Dim* varying = std::get_if<Dim>(given); varying && !varying->is_constant()) return max(shape.count - *varying, Dim(0));
  const double correction = q.number("correction", 1);
  TENON_USER_CHECK(std::abs(correction) < 0x1p62, "a correction of {}", correction);
  if (correction != std::floor(correction) && !shape.count.is_constant()) {
    ask::constant(shape.count);
    throw Exception(Code::unsupported, "a correction that is no integer, over dimensions of unknown size");
  }
  if (correction != std::floor(correction)) return std::max(0.0, static_cast<double>(shape.count.constant()) - correction);
  return max(shape.count - Dim(static_cast<std::int64_t>(correction)), Dim(0));
}

std::vector<Scalar> ReductionShape::operand_index(Scalars& s, const OpQuery& q) const {
  const bool keep = q.flag("keepdim");
  std::vector<Scalar> index;
  std::size_t outer = 0, inner = result.size();
  for (std::size_t d = 0; d < q.type(0).rank(); ++d) {
    const bool gone = std::ranges::binary_search(reduced, d);
    index.push_back(s.loop_index(gone ? inner++ : outer));
    if (!gone || keep) ++outer;
  }
  return index;
}

Reducer simple_reducer(DType dtype, double identity, Primitive combine, const std::function<Scalar(Scalars&, Scalar)>& finish) {
  Scalars init, both, last;
  init.result(init.constant(dtype, identity));
  both.result(both.binary(combine, both.parameter(0, dtype), both.parameter(1, dtype)));
  const Scalar total = last.parameter(0, dtype);
  last.result(finish ? finish(last, total) : total);
  return {.accumulators = {dtype}, .init = init.take(), .combine = both.take(), .finish = last.take()};
}

Scalar extreme_value(Scalars& s, DType t, bool largest) {
  if (is_float(t)) return s.constant(t, largest ? INFINITY : -INFINITY);
  switch (t) {
    case DType::b8: return s.constant(t, std::int64_t{largest});
    case DType::u8: return s.constant(t, std::int64_t{largest ? 255 : 0});
    case DType::i8: return s.constant(t, std::int64_t{largest ? 127 : -128});
    case DType::i16: return s.constant(t, std::int64_t{largest ? 32767 : -32768});
    case DType::i32: return s.constant(t, std::int64_t{largest ? INT32_MAX : INT32_MIN});
    default: return s.constant(t, std::int64_t{largest ? INT64_MAX : INT64_MIN});
  }
}

namespace {

/// Of two elements the better one, of two equally good ones that with the lower place: the one that comes first has only not to be worse.
ScalarProgram better_of_two(DType t, DType place, bool largest, NanPlace nan) {
  Scalars s;
  const Scalar a = s.parameter(0, t), ai = s.parameter(1, place), b = s.parameter(2, t), bi = s.parameter(3, place);
  Scalar a_first = s.lt(ai, bi);
  Scalar not_worse = largest ? s.ge(a, b) : s.le(a, b);
  Scalar better;
  if (is_float(t)) {
    const Scalar nan_a = s.isnan(a), nan_b = s.isnan(b);
    not_worse = s.logical_or(not_worse, nan_a);
    better = s.logical_and(s.logical_not(largest ? s.le(a, b) : s.ge(a, b)), s.logical_not(nan_b));
    if (nan == NanPlace::last) a_first = s.binary(Primitive::logical_xor, a_first, s.logical_and(nan_a, nan_b));
  } else {
    better = largest ? s.gt(a, b) : s.lt(a, b);
  }
  const Scalar take_a = s.select(a_first, not_worse, better);
  s.result(s.select(take_a, a, b));
  s.result(s.select(take_a, ai, bi));
  return s.take();
}

}  // namespace

DType place_type(const ir::Dim& count) {
  return count.is_constant() && count.constant() < INT32_MAX ? DType::i32 : DType::i64;
}

Reducer place_reducer(DType t, DType place, bool largest, NanPlace nan, bool with_value) {
  Scalars init, finish;
  init.result(extreme_value(init, t, !largest));
  init.result(extreme_value(init, place, true));
  const Scalar value = finish.parameter(0, t), index = finish.parameter(1, place);
  if (with_value) finish.result(value);
  finish.result(finish.convert(index, DType::i64));
  return {.accumulators = {t, place}, .init = init.take(), .combine = better_of_two(t, place, largest, nan), .finish = finish.take()};
}

std::vector<Sample> reduction_samples(std::vector<DType> dtypes, Fill fill, ir::Attributes attributes, bool zero_size) {
  std::vector<Sample> all;
  const auto add = [&](std::string name, DType t, std::vector<std::int64_t> shape, std::vector<Dim> dims, bool keep) -> SampleOperand& {
    ir::Attributes set = attributes;
    set.emplace_back("dim", dims);
    set.emplace_back("keepdim", keep);
    all.push_back(
        {.name = std::move(name), .operands = {{.dtype = t, .shape = std::move(shape), .fill = fill}}, .attributes = std::move(set)});
    return all.back().operands[0];
  };
  for (DType t : dtypes) {
    add(fmt::format("last_{}", name_of(t)), t, {3, 4, 5}, {2}, false);
    add(fmt::format("all_{}", name_of(t)), t, {3, 4, 5}, {0, 1, 2}, false);
  }
  const DType t = dtypes.back();
  add("first_keepdim", t, {4, 7}, {0}, true);
  add("middle", t, {3, 6, 2}, {1}, false);
  add("outer_two", t, {5, 3, 4}, {0, 2}, false);
  add("long", t, {2, 1500}, {1}, false);
  add("many_results", t, {70, 9}, {1}, true);
  add("scalar", t, {}, {}, false);
  add("size_one", t, {1, 3}, {0}, false);
  if (zero_size) add("of_nothing", t, {0, 3}, {0}, false);
  add("no_results", t, {0, 3}, {1}, false);
  add("strided", t, {6, 5}, {1}, false).strides = {{1, 6}};
  add("reversed", t, {6, 5}, {0}, false).strides = {{-5, -1}};
  return all;
}

ir::Attributes with_dtype(ir::Attributes attributes, DType dtype) {
  attributes.emplace_back("dtype", dtype);
  return attributes;
}

bool is_empty_list(const ForeignArgument& argument) {
  const ForeignList* list = argument.as<ForeignList>();
  return list && list->empty();
}

ir::Attributes reduction_attributes(ForeignArguments& a, ir::ValueId x) {
  return {{"dim", a.dims("dim", a.type(x).rank())}, {"keepdim", a.flag("keepdim")}};
}

ir::Dim elements_of_result(ForeignArguments& a, ir::ValueId x) {
  ir::Dim count(1);
  for (const ir::Dim& d : a.dims("dim", a.type(x).rank())) count = count * a.type(x).shape[static_cast<std::size_t>(d.constant())];
  return count;
}

std::vector<Alias> reduction_names(std::string_view torch, std::string_view numpy, Adapt adapt, std::string_view torch_extra,
                                   std::string_view numpy_extra) {
  std::vector<Alias> aliases;
  if (!torch.empty())
    aliases = torch_names(torch, fmt::format("(self, dim=None, keepdim=False, *, dtype=None{}, out=None)", torch_extra), adapt);
  if (!numpy.empty()) {
    const std::string rest =
        fmt::format("dim = None, dtype=None, out=None{}, keepdims -> keepdim = False, initial=None, where=True)", numpy_extra);
    aliases = std::move(aliases) + names({fmt::format("numpy.{}", numpy)}, "(a -> self, axis -> " + rest, adapt) +
              names({fmt::format("numpy.ndarray.{}", numpy)}, "(self, axis -> " + rest, adapt);
  }
  return aliases;
}

}  // namespace tenon::ops
