// The distinct elements of a tensor in order: sorted, then those that differ from the one before. No op is declared here.
#include "core/ops/families/formula.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::Shape;
using V = ir::ValueId;

/// Whether each element differs from the one before it; the first does. `one_nan`: NaNs count as equal.
V differs(ForeignArguments& a, V lane, bool one_nan) {
  Formula f(a);
  NodeBuilder& b = a.builder();
  const V later = slice_of(b, lane, 0, {Dim(1), {}, {}}), earlier = slice_of(b, lane, 0, {{}, Dim(-1), {}});
  V unlike = a.one("ne", {later, earlier});
  if (one_nan && is_float(f.dtype(lane))) {
    const V both = a.one("logical_and", {f.one("isnan", later), f.one("isnan", earlier)});
    unlike = a.one("logical_and", {unlike, f.one("logical_not", both)});
  }
  const V first = b.one("full", {b.literal(true)}, {{"dtype", DType::b8}, {"size", Shape{Dim(1)}}});
  return a.one("cat", {first, unlike}, {{"dim", Dim(0)}});
}

V as_lane(ForeignArguments& a) {
  const V x = a.tensor(a.value("self"));
  const Dim size = ir::product(a.type(x).shape);
  if (size.is_constant() && size.constant() == 0) throw Exception(Code::unsupported, "the distinct elements of nothing");
  if (!a["dim"].is_none()) throw Exception(Code::unsupported, "the distinct slices along a dimension");
  return reshape_to(a.builder(), x, {size});
}

/// The distinct elements of a lane, with what else is asked for: where each stood first, the place of each element among them, and how often
/// each stands there.
/// `order`: where each element of the lane stood, if it has been sorted.
Values distinct(ForeignArguments& a, V lane, std::optional<V> order, bool one_nan) {
  Formula f(a);
  NodeBuilder& b = a.builder();
  const Dim size = f.shape(lane)[0];
  const V first = differs(a, lane, one_nan);
  const V places = select_of(b, a.one("nonzero", {first}), 1, Dim(0));
  Values all{a.one("index_select", {lane, places}, {{"dim", Dim(0)}})};
  const bool inverse = a.flag("return_inverse"), counts = a.flag("return_counts"), index = a.numpy() && a.flag("return_index");
  if (!inverse && !counts && !index) return all;
  if (index) all.push_back(a.one("index_select", {*order, places}, {{"dim", Dim(0)}}));
  const V rank = f.sub(a.one("cumsum", {first}, {{"dim", Dim(0)}, {"dtype", DType::i64}}), f.integer(1));
  if (inverse) {
    const V found = order ? a.one("index_copy", {f.filled(0, DType::i64, {size}), *order, rank}, {{"dim", Dim(0)}}) : rank;
    all.push_back(reshape_to(b, found, a.type(a.value("self")).shape));
  }
  if (counts) all.push_back(a.one("index_add", {f.filled(0, DType::i64, f.shape(places)), rank, f.filled(1, DType::i64, {size})}, {{"dim", Dim(0)}}));
  a.container = Container::tuple;
  return all;
}

/// On the CPU torch sorts them whatever `sorted` says; NumPy does not.
Values unique(ForeignArguments& a) {
  if (a.numpy() && !a.flag("sorted", true)) throw Exception(Code::unsupported, "distinct elements in no order");
  const Values sorted = a.call("sort", {as_lane(a)}, {{"descending", false}, {"dim", Dim(0)}});
  return distinct(a, sorted[0], sorted[1], a.numpy() && a.flag("equal_nan", true));
}

Values unique_consecutive(ForeignArguments& a) { return distinct(a, as_lane(a), {}, false); }

}  // namespace

std::vector<Alias> unique_names() {
  return torch_names("unique", "(self, sorted=True, return_inverse=False, return_counts=False, dim=None)", unique) +
         torch_names("unique_consecutive", "(self, return_inverse=False, return_counts=False, dim=None)", unique_consecutive) +
         names({"numpy.unique"}, "(ar -> self, return_index=False, return_inverse=False, return_counts=False, axis -> dim = None, *, equal_nan=True, sorted=True)", unique);
}

}  // namespace tenon::ops
