#include "core/ops/notation/move.h"

#include <algorithm>
#include <numeric>

#include "core/ir/relation.h"
#include "core/ops/build/expand.h"
#include "core/ops/size_questions.h"

namespace tenon::ops {

using ir::Dim;
using ir::Shape;

std::size_t real_dim(const OpQuery& q) {
  TENON_USER_CHECK(q.type(0).rank() > 0, "cannot be applied to a 0-d tensor");
  return static_cast<std::size_t>(infer::wrap_dim(q.constant_integer("dim", 0), q.type(0).rank()));
}

Op movement(std::string name, std::string schema, ShapeRule shape, IndexMap map, std::vector<Alias> aliases) {
  Op op;
  op.name = std::move(name);
  op.schema = std::move(schema);
  op.aliases = std::move(aliases);
  op.infer = [shape](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 1, 1);
    return infer::one(q, q.type(0).dtype, shape(q));
  };
  op.loop = [shape, map](const OpQuery& q) {
    Shape result = shape(q);
    const std::size_t rank = result.size();
    return elementwise(std::move(result), [&](Scalars& s) {
      const auto at = IndexMath(s).loops(rank);
      const DType t = q.type(0).dtype;
      return q.literal(0) ? literal_scalar(s, *q.literal(0), compute_type(t)) : s.load(0, t, map(s, q, at));
    });
  };
  return op;
}

namespace {

/// Prefix products of a shape: entry i is the product of the first i dimensions.
std::vector<Dim> prefixes(std::span<const Dim> shape) {
  std::vector<Dim> all{Dim(1)};
  for (const Dim& d : shape) all.push_back(all.back() * d);
  return all;
}

/// Indices of the dimensions of `from` in [first, last) from those of `to`, whose products are equal.
void regroup(Scalars& s, std::span<const Dim> from, std::span<const Dim> to, std::span<const Scalar> at, std::span<Scalar> index) {
  IndexMath m(s);
  const auto is_one = [](const Dim& d) { return d == Dim(1); };
  std::vector<std::size_t> sources, targets;
  for (std::size_t i = 0; i < from.size(); ++i) {
    index[i] = m.of(0);
    if (!is_one(from[i])) sources.push_back(i);
  }
  for (std::size_t j = 0; j < to.size(); ++j)
    if (!is_one(to[j])) targets.push_back(j);
  if (sources.empty() || targets.empty()) return;
  Scalar linear = at[targets[0]];
  for (std::size_t k = 1; k < targets.size(); ++k) linear = s.add(m.mul(linear, to[targets[k]]), at[targets[k]]);
  for (std::size_t k = sources.size(); k-- > 1;) {
    index[sources[k]] = m.mod(linear, from[sources[k]]);
    linear = m.floor_div(linear, from[sources[k]]);
  }
  index[sources[0]] = linear;
}

}  // namespace

std::vector<Scalar> reshaped_index(Scalars& s, std::span<const Dim> from, std::span<const Dim> to, std::span<const Scalar> at) {
  const auto from_products = prefixes(from), to_products = prefixes(to);
  std::vector<Scalar> index(from.size());
  std::size_t i = 0, j = 0;
  // The smallest groups: the next pair of prefixes with equal products.
  while (i < from.size() || j < to.size()) {
    std::size_t next_i = from.size(), next_j = to.size();
    for (std::size_t a = i + (i < from.size()); a <= from.size() && next_i == from.size() && next_j == to.size(); ++a)
      for (std::size_t b = j + (j < to.size()); b <= to.size(); ++b)
        if (from_products[a] == to_products[b] && (a < from.size() || b < to.size())) {
          next_i = a;
          next_j = b;
          break;
        }
    regroup(s, from.subspan(i, next_i - i), to.subspan(j, next_j - j), at.subspan(j, next_j - j), std::span(index).subspan(i, next_i - i));
    i = next_i;
    j = next_j;
  }
  return index;
}

/// Takes sizes that are given for those that are there, where these can be proven equal by a guard alone: a part `x[i : i + h]` has h elements, as long
/// as it ends within x.
static void take_old_sizes(std::span<const Dim> old, std::span<Dim> shape) {
  for (Dim& size : shape) {
    if (size.is_constant() || std::ranges::find(old, size) != old.end()) continue;
    const auto same = std::ranges::find_if(old, [&](const Dim& there) { return !there.is_constant() && ask::is_same(size, there); });
    if (same != old.end()) size = *same;
  }
}

Shape completed_shape(const ir::Graph& graph, std::span<const Dim> old, std::vector<Dim> shape) {
  take_old_sizes(old, shape);
  const Dim count = ir::product(old);
  std::optional<std::size_t> open;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    infer::require_plain_size(graph, shape[i]);
    if (!(shape[i] == Dim(-1))) continue;
    TENON_USER_CHECK(!open, "only one dimension can be inferred");
    open = i;
  }
  if (!open) {
    const Dim given = ir::product(shape);
    if (given == count || ir::are_always_equal(given, count)) return shape;
    ask::equal(given, count);
    const std::string message =
        fmt::format("shape '{}' is invalid for input of size {}", infer::text(graph, shape), infer::text(graph, count));
    throw Exception((given - count).is_constant() ? Code::invalid_argument : Code::unsupported, message);
  }
  // Factors that stand on both sides cancel; what remains must divide.
  std::vector<Dim> left(old.begin(), old.end());
  Dim rest(1);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i == *open) continue;
    const auto same = std::ranges::find(left, shape[i]);
    if (same != left.end() && !(shape[i] == Dim(0)))
      left.erase(same);
    else
      rest = rest * shape[i];
  }
  const Dim total = ir::product(left);
  TENON_USER_CHECK(!(rest == Dim(0)),
                   "cannot reshape tensor of 0 elements into shape {} because the unspecified dimension size -1 can be any value",
                   infer::text(graph, shape));
  TENON_USER_CHECK(!total.is_constant() || !rest.is_constant() || total.constant() % rest.constant() == 0,
                   "shape '{}' is invalid for input of size {}", infer::text(graph, shape), infer::text(graph, count));
  shape[*open] = rest == Dim(1) ? total : floor_div(total, rest);
  if (!(shape[*open] * rest == total)) {
    ask::divisible(total, rest);
    throw Exception(
        error(Code::unsupported, "{} cannot be proven to be divisible by {}", infer::text(graph, total), infer::text(graph, rest)));
  }
  return shape;
}

ir::ValueId reshape_to(NodeBuilder& b, ir::ValueId x, Shape shape) {
  const Shape old = b.graph().type(x).shape;
  shape = completed_shape(b.graph(), old, std::move(shape));
  return shape == old ? x : b.one("reshape", {x}, {{"shape", std::move(shape)}});
}

ir::ValueId as_vector(NodeBuilder& b, ir::ValueId x) { return b.graph().type(x).rank() ? x : reshape_to(b, x, {ir::Dim(1)}); }

ir::ValueId permute_by(NodeBuilder& b, ir::ValueId x, std::vector<std::int64_t> order) {
  std::vector<Dim> dims;
  bool identity = true;
  for (std::size_t i = 0; i < order.size(); ++i) {
    dims.emplace_back(infer::wrap_dim(order[i], order.size()));
    identity &= dims.back() == Dim(static_cast<std::int64_t>(i));
  }
  return identity && order.size() == b.graph().type(x).rank() ? x : b.one("permute", {x}, {{"dims", std::move(dims)}});
}

std::vector<std::int64_t> transposing_order(std::size_t rank) {
  std::vector<std::int64_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[rank - 1], order[rank - 2]);
  return order;
}

ir::ValueId transpose_of(NodeBuilder& b, ir::ValueId x) { return permute_by(b, x, transposing_order(b.graph().type(x).rank())); }

ir::ValueId expand_to(NodeBuilder& b, ir::ValueId x, Shape shape) {
  return shape == b.graph().type(x).shape ? x : b.one("expand", {x}, {{"size", std::move(shape)}});
}

/// A place that may be counted from either end, in call after call: from the start, and clamped to the sequence.
static Dim place_from_start(const Dim& place, const Dim& size) {
  const Dim from_start = min(max(place, Dim(0)), size), from_end = max(min(place, Dim(0)) + size, Dim(0));
  const Dim is_from_start = min(max(place + Dim(1), Dim(0)), Dim(1));
  return from_start + from_end - size * is_from_start;  // of the two, the other one is 0, or the size
}

SliceBounds slice_bounds(const ir::Graph& graph, const Dim& size, const ForeignSlice& slice) {
  const Dim step = slice.step.value_or(Dim(1));
  const bool backward = infer::is_negative(graph, step);
  const infer::Interval steps = infer::range(graph, step);
  TENON_USER_CHECK(steps.least != 0 || steps.most != 0, "slice step cannot be zero");
  if (steps.least == 0) {
    ask::not_negative(step - Dim(1));
    throw Exception(error(Code::unsupported, "a slice whose step may be zero: {}", infer::text(graph, step)));
  }
  const auto place = [&](const std::optional<Dim>& bound, const Dim& otherwise, const Dim& least, const Dim& most) {
    if (!bound) return otherwise;
    const infer::Interval all = infer::range(graph, *bound);
    const bool open = !backward && all.least < 0 && all.most >= 0;
    if (open && !ask::keeps_sign_open(*bound)) ask::not_negative(*bound);  // a range would say it with less
    const Dim at = open ? place_from_start(*bound, size) : infer::is_negative(graph, *bound) ? *bound + size : *bound;
    return infer::clamped(graph, at, least, most);
  };
  if (!backward) {
    const Dim start = place(slice.start, Dim(0), Dim(0), size), end = place(slice.stop, size, Dim(0), size);
    return {start, infer::at_least(graph, end, start), step, false};
  }
  // Elements start, start + step, ... while > end: forwards these are low, low - step, ..., start.
  const Dim last = size - Dim(1);
  const Dim start = place(slice.start, last, Dim(-1), last), end = place(slice.stop, Dim(-1), Dim(-1), last);
  const Dim count = infer::clamped(graph, floor_div(start - end - step - Dim(1), -step), Dim(0), size);
  if (count == Dim(0)) return {Dim(0), Dim(0), Dim(1), false};
  return {start + (count - Dim(1)) * step, start + Dim(1), -step, true};
}

Dim slice_extent(const SliceBounds& bounds) {
  const Dim length = bounds.end - bounds.start;
  return bounds.step == Dim(1) ? length : floor_div(length + bounds.step - Dim(1), bounds.step);
}

ir::ValueId slice_of(NodeBuilder& b, ir::ValueId x, std::size_t dim, const ForeignSlice& slice) {
  const Dim size = b.graph().type(x).shape.at(dim);
  const SliceBounds at = slice_bounds(b.graph(), size, slice);
  const Dim d(static_cast<std::int64_t>(dim));
  if (!(at.start == Dim(0) && at.end == size && at.step == Dim(1)))
    x = b.one("slice", {x}, {{"dim", d}, {"end", at.end}, {"start", at.start}, {"step", at.step}});
  return at.backward ? b.one("flip", {x}, {{"dims", std::vector<Dim>{d}}}) : x;
}

ir::ValueId select_of(NodeBuilder& b, ir::ValueId x, std::size_t dim, const Dim& index) {
  return b.one("select", {x}, {{"dim", Dim(static_cast<std::int64_t>(dim))}, {"index", index}});
}

std::vector<Sample> movement_samples(std::vector<std::int64_t> shape, std::vector<ir::Attributes> sets) {
  std::vector<Sample> all;
  std::vector<std::int64_t> column_major(shape.size());
  std::int64_t stride = 1;
  for (std::size_t i = 0; i < shape.size(); stride *= shape[i], ++i) column_major[i] = stride;
  for (std::size_t k = 0; k < sets.size(); ++k) {
    for (DType t : {DType::f32, DType::b8, DType::i16, DType::i64, DType::bf16, DType::f64})
      all.push_back({.name = fmt::format("{}_{}", k, name_of(t)),
                     .operands = {{.dtype = t, .shape = shape, .fill = Fill::special}},
                     .attributes = sets[k]});
    all.push_back({.name = fmt::format("{}_strided", k), .operands = {{.shape = shape, .strides = column_major}}, .attributes = sets[k]});
  }
  return all;
}

std::vector<Dim> last_dims(std::size_t rank, std::size_t count) {
  std::vector<Dim> dims;
  for (std::size_t d = rank - count; d < rank; ++d) dims.emplace_back(static_cast<std::int64_t>(d));
  return dims;
}

}  // namespace tenon::ops
