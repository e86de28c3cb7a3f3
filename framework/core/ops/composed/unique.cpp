// The distinct elements of a tensor in order: sorted, then those that differ from the one before. No op is declared here.
#include <algorithm>

#include "core/ops/notation/formula.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::Shape;
using V = ir::ValueId;

/// Whether each element of a lane, or row of a matrix, differs from the one before it; the first does. `one_nan`: NaNs count as equal.
V differs(ForeignArguments& a, V lane, bool one_nan) {
  Formula f(a);
  NodeBuilder& b = a.builder();
  const V later = slice_of(b, lane, 0, {Dim(1), {}, {}}), earlier = slice_of(b, lane, 0, {{}, Dim(-1), {}});
  V unlike = a.one("ne", {later, earlier});
  if (one_nan && is_float(f.dtype(lane))) {
    const V both = a.one("logical_and", {f.one("isnan", later), f.one("isnan", earlier)});
    unlike = a.one("logical_and", {unlike, f.one("logical_not", both)});
  }
  if (f.rank(lane) == 2) unlike = a.one("any", {unlike}, {{"dim", std::vector<Dim>{Dim(1)}}, {"keepdim", false}});
  const V first = b.full(true, DType::b8, {Dim(1)});
  return a.one("cat", {first, unlike}, {{"dim", Dim(0)}});
}

/// The elements in one lane, or the slices along `dim` as rows of a matrix.
struct Slices {
  V lane;
  Shape shape;  // of the tensor with the dimension first; empty without one
  std::size_t dim = 0;

  explicit Slices(ForeignArguments& a) {
    V x = a.tensor(a.value("self"));
    const Dim size = ir::product(a.type(x).shape);
    if (size.is_constant() && size.constant() == 0) throw Exception(Code::unsupported, "the distinct elements of nothing");
    if (a["dim"].is_none()) {
      lane = reshape_to(a.builder(), x, {size});
      return;
    }
    if (a.numpy() || a.type(x).rank() == 0) throw Exception(Code::unsupported, "the distinct slices along a dimension");
    dim = static_cast<std::size_t>(infer::wrap_dim(a.integer("dim").constant(), a.type(x).rank()));
    x = permute_by(a.builder(), x, order(a.type(x).rank(), true));
    shape = a.type(x).shape;
    lane = reshape_to(a.builder(), x, {shape[0], ir::product(std::span(shape).subspan(1))});
  }

  /// What moves the dimension to the front, or back.
  std::vector<std::int64_t> order(std::size_t rank, bool to_front) const {
    std::vector<std::int64_t> order(rank);
    for (std::size_t d = 0; d < rank; ++d) order[d] = static_cast<std::int64_t>(d);
    const auto first = order.begin(), moved = first + static_cast<std::ptrdiff_t>(dim);
    to_front ? std::rotate(first, moved, moved + 1) : std::rotate(first, first + 1, moved + 1);
    return order;
  }

  /// Distinct rows as slices.
  V restored(ForeignArguments& a, V rows) const {
    if (shape.empty()) return rows;
    Shape all = shape;
    all[0] = a.type(rows).shape[0];
    return permute_by(a.builder(), reshape_to(a.builder(), rows, all), order(shape.size(), false));
  }
};

/// The distinct elements of a lane, with what else is asked for: where each stood first, the place of each element among them, and how often
/// each stands there. `order`: where each element of the lane stood, if it has been sorted.
Values distinct(ForeignArguments& a, const Slices& slices, V lane, std::optional<V> order, bool one_nan) {
  Formula f(a);
  NodeBuilder& b = a.builder();
  const Dim size = f.shape(lane)[0];
  const V first = differs(a, lane, one_nan);
  const V places = select_of(b, a.one("nonzero", {first}), 1, Dim(0));
  Values all{slices.restored(a, a.one("index_select", {lane, places}, {{"dim", Dim(0)}}))};
  const bool inverse = a.flag("return_inverse"), counts = a.flag("return_counts"), index = a.numpy() && a.flag("return_index");
  if (!inverse && !counts && !index) return all;
  if (index) all.push_back(a.one("index_select", {*order, places}, {{"dim", Dim(0)}}));
  const V rank = f.sub(a.one("cumsum", {first}, {{"dim", Dim(0)}, {"dtype", DType::i64}}), f.integer(1));
  if (inverse) {
    const V found = order ? a.one("index_copy", {f.filled(0, DType::i64, {size}), *order, rank}, {{"dim", Dim(0)}}) : rank;
    all.push_back(slices.shape.empty() ? reshape_to(b, found, a.type(a.value("self")).shape) : found);
  }
  if (counts) all.push_back(a.one("index_add", {f.filled(0, DType::i64, f.shape(places)), rank, f.filled(1, DType::i64, {size})}, {{"dim", Dim(0)}}));
  a.container = Container::tuple;
  return all;
}

/// On the CPU torch sorts them whatever `sorted` says; NumPy does not.
Values unique(ForeignArguments& a) {
  if (a.numpy() && !a.flag("sorted", true)) throw Exception(Code::unsupported, "distinct elements in no order");
  const Slices slices(a);
  if (!slices.shape.empty()) {
    const V order = a.one("order_of_rows", {slices.lane});
    return distinct(a, slices, a.one("index_select", {slices.lane, order}, {{"dim", Dim(0)}}), order, false);
  }
  const Values sorted = a.call("sort", {slices.lane}, {{"descending", false}, {"dim", Dim(0)}});
  return distinct(a, slices, sorted[0], sorted[1], a.numpy() && a.flag("equal_nan", true));
}

Values unique_consecutive(ForeignArguments& a) {
  const Slices slices(a);
  return distinct(a, slices, slices.lane, {}, false);
}

}  // namespace

std::vector<Alias> unique_names() {
  return torch_names("unique", "(self, sorted=True, return_inverse=False, return_counts=False, dim=None)", unique) +
         torch_names("unique_consecutive", "(self, return_inverse=False, return_counts=False, dim=None)", unique_consecutive) +
         names({"numpy.unique"}, "(ar -> self, return_index=False, return_inverse=False, return_counts=False, axis -> dim = None, *, equal_nan=True, sorted=True)", unique);
}

}  // namespace tenon::ops
