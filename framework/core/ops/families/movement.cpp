// Views: the same elements in another shape or order.
#include <algorithm>
#include <numeric>

#include "core/ops/families/move.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::Shape;

std::size_t dim_of(const OpQuery& q, std::string_view name = "dim") {
  return static_cast<std::size_t>(infer::wrap_dim(q.constant_integer(name), q.type(0).rank()));
}

std::size_t real_dim(const OpQuery& q) {
  TENON_USER_CHECK(q.type(0).rank() > 0, "cannot be applied to a 0-d tensor");
  return dim_of(q);
}

std::vector<std::int64_t> constants(std::span<const Dim> dims) {
  std::vector<std::int64_t> all;
  for (const Dim& d : dims) {
    if (!d.is_constant()) throw Exception(Code::unsupported, "dimensions must be constants");
    all.push_back(d.constant());
  }
  return all;
}

// ---- reshape

Values view(ForeignArguments& a) { return {reshape_to(a.builder(), a.value("self"), a.integers("shape"))}; }

Values reshape_like(ForeignArguments& a) { return {reshape_to(a.builder(), a.value("self"), a.type(a.value("other")).shape)}; }

/// NumPy's order: only row-major is the same elements in the same order.
void require_row_major(ForeignArguments& a) {
  const std::string order = a.text("order", "C");
  if (order != "C" && order != "K" && order != "A") throw Exception(error(Code::unsupported, "order='{}'", order));
}

Values numpy_reshape(ForeignArguments& a) {
  require_row_major(a);
  return {reshape_to(a.builder(), a.tensor(a.value("self")), a.integers(a.given("newshape") ? "newshape" : "shape"))};
}

Values ravel(ForeignArguments& a) {
  require_row_major(a);
  return {reshape_to(a.builder(), a.tensor(a.value("self")), {Dim(-1)})};
}

Values flatten(ForeignArguments& a) {
  const ir::ValueId x = a.value("self");
  const Shape old = a.type(x).shape;
  if (old.empty()) return {reshape_to(a.builder(), x, {Dim(1)})};
  const auto first = static_cast<std::size_t>(infer::wrap_dim(a.integer("start_dim", 0).constant(), old.size()));
  const auto last = static_cast<std::size_t>(infer::wrap_dim(a.integer("end_dim", -1).constant(), old.size()));
  TENON_USER_CHECK(first <= last, "flatten() has invalid args: start_dim cannot come after end_dim");
  Shape shape(old.begin(), old.begin() + static_cast<std::ptrdiff_t>(first));
  shape.push_back(ir::product(std::span(old).subspan(first, last - first + 1)));
  shape.insert(shape.end(), old.begin() + static_cast<std::ptrdiff_t>(last) + 1, old.end());
  return {reshape_to(a.builder(), x, std::move(shape))};
}

Values unflatten(ForeignArguments& a) {
  const ir::ValueId x = a.value("self");
  Shape shape = a.type(x).shape;
  const auto dim = static_cast<std::size_t>(a.dim("dim", shape.size()));
  const Shape sizes = completed_shape(a.graph(), std::array{shape[dim]}, a.integers("sizes"));
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(dim));
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(dim), sizes.begin(), sizes.end());
  return {reshape_to(a.builder(), x, std::move(shape))};
}

bool is_one(ForeignArguments& a, const Dim& d) {
  if (d.is_constant()) return d.constant() == 1;
  const infer::Interval range = infer::range(a.graph(), d);
  if (range.least <= 1 && range.most >= 1) throw Exception(error(Code::unsupported, "whether {} is 1 is not known", infer::text(a.graph(), d)));
  return false;
}

Values squeeze(ForeignArguments& a) {
  const ir::ValueId x = a.value("self");
  const Shape old = a.type(x).shape;
  std::vector<bool> gone(old.size(), !a.given("dim"));
  if (a.given("dim"))
    for (const Dim& d : a.integers("dim")) {
      const auto at = static_cast<std::size_t>(infer::wrap_dim(d.constant(), old.size()));
      if (at < old.size()) gone[at] = true;
      TENON_USER_CHECK(!a.numpy() || at >= old.size() || is_one(a, old[at]), "cannot select an axis to squeeze out which has size not equal to one");
    }
  Shape shape;
  for (std::size_t i = 0; i < old.size(); ++i)
    if (!gone[i] || !is_one(a, old[i])) shape.push_back(old[i]);
  return {reshape_to(a.builder(), x, std::move(shape))};
}

Values unsqueeze(ForeignArguments& a) {
  const ir::ValueId x = a.value("self");
  Shape shape = a.type(x).shape;
  std::vector<std::int64_t> dims;
  const auto given = a.integers("dim");
  for (const Dim& d : given) dims.push_back(infer::wrap_dim(d.constant(), shape.size() + given.size()));
  std::ranges::sort(dims);
  for (std::int64_t d : dims) shape.insert(shape.begin() + d, Dim(1));
  return {reshape_to(a.builder(), x, std::move(shape))};
}

Op reshape_op() {
  std::vector<Alias> aliases = torch_names("reshape", "(self, *shape)", view) + names({"torch.Tensor.view"}, "(self, *shape, dtype=None)", [](ForeignArguments& a) {
    if (a.given("dtype") || (a["shape"].as<ForeignList>() && a["shape"].as<ForeignList>()->size() == 1 && a["shape"].as<ForeignList>()->front().as<DType>()))
      throw Exception(Code::unsupported, "a view as another dtype");
    return view(a);
  }) + names({"torch.Tensor.view_as", "torch.Tensor.reshape_as"}, "(self, other)", reshape_like) +
      torch_names("flatten", "(self, start_dim=0, end_dim=-1)", flatten) + torch_names("ravel", "(self, order='C')", ravel) +
      torch_names("unflatten", "(self, dim, sizes)", unflatten) + torch_names("squeeze", "(self, dim=None)", squeeze) + torch_names("unsqueeze", "(self, dim)", unsqueeze) +
      names({"numpy.reshape"}, "(a -> self, shape=None, order='C', *, newshape=None, copy=None)", numpy_reshape) +
      names({"numpy.ndarray.reshape"}, "(self, *shape, order='C', newshape=None, copy=None)", numpy_reshape) +
      names({"numpy.ravel"}, "(a -> self, order='C')", ravel) + names({"numpy.ndarray.ravel", "numpy.ndarray.flatten"}, "(self, order='C')", ravel) +
      names({"numpy.squeeze"}, "(a -> self, axis -> dim = None)", squeeze) + names({"numpy.ndarray.squeeze"}, "(self, axis -> dim = None)", squeeze) +
      names({"numpy.expand_dims"}, "(a -> self, axis -> dim)", unsqueeze);
  Op op = movement("reshape", "(Tensor self, int[] shape) -> Tensor",
                   [](const OpQuery& q) { return completed_shape(q.graph(), q.type(0).shape, q.integers("shape")); },
                   [](Scalars& s, const OpQuery& q, std::span<const Scalar> at) {
                     const Shape to = completed_shape(q.graph(), q.type(0).shape, q.integers("shape"));
                     return reshaped_index(s, q.type(0).shape, to, at);
                   },
                   std::move(aliases));
  op.samples = [] {
    const auto shape = [](std::vector<Dim> d) { return ir::Attributes{{"shape", std::move(d)}}; };
    return movement_samples({4, 6, 5}, {shape({24, 5}), shape({4, 30}), shape({2, 2, 3, 2, 5}), shape({120}), shape({8, 15}), shape({4, 1, 6, 5, 1}), shape({5, -1, 4})});
  };
  return op;
}

// ---- permute

std::vector<std::int64_t> iota(std::size_t n) {
  std::vector<std::int64_t> all(n);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Values permute(ForeignArguments& a) {
  const ir::ValueId x = a.tensor(a.value("self"));
  const std::size_t rank = a.type(x).rank();
  std::vector<std::int64_t> order = a.given("dims") ? constants(a.integers("dims")) : std::vector<std::int64_t>{};
  if (order.empty() && a.numpy()) {  // no axes: reversed
    order = iota(rank);
    std::ranges::reverse(order);
  }
  return {permute_by(a.builder(), x, std::move(order))};
}

Values transpose(ForeignArguments& a) {
  const ir::ValueId x = a.value("self");
  const std::size_t rank = a.type(x).rank();
  auto order = iota(rank);
  if (rank > 0) std::swap(order[static_cast<std::size_t>(a.dim("dim0", rank))], order[static_cast<std::size_t>(a.dim("dim1", rank))]);
  return {permute_by(a.builder(), x, std::move(order))};
}

Values reversed_order(ForeignArguments& a) {
  auto order = iota(a.type(a.value("self")).rank());
  std::ranges::reverse(order);
  return {permute_by(a.builder(), a.value("self"), std::move(order))};
}

Values two_dimensional_transpose(ForeignArguments& a) {
  TENON_USER_CHECK(a.type(a.value("self")).rank() <= 2, "t() expects a tensor with <= 2 dimensions, but self is {}D", a.type(a.value("self")).rank());
  return reversed_order(a);
}

Values matrix_transpose(ForeignArguments& a) {
  auto order = iota(a.type(a.value("self")).rank());
  TENON_USER_CHECK(order.size() >= 2, "the transpose of matrices needs at least 2 dimensions, not {}", order.size());
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return {permute_by(a.builder(), a.value("self"), std::move(order))};
}

Values move_dims(ForeignArguments& a) {
  const ir::ValueId x = a.value("self");
  const std::size_t rank = a.type(x).rank();
  const auto from = constants(a.integers("source")), to = constants(a.integers("destination"));
  TENON_USER_CHECK(from.size() == to.size(), "movedim: source and destination must have the same number of elements");
  std::vector<std::int64_t> order(rank, -1), rest;
  std::vector<bool> moved(rank, false);
  for (std::size_t i = 0; i < from.size(); ++i) {
    const auto source = infer::wrap_dim(from[i], rank);
    order[static_cast<std::size_t>(infer::wrap_dim(to[i], rank))] = source;
    moved[static_cast<std::size_t>(source)] = true;
  }
  auto next = moved.begin();
  for (std::int64_t& o : order) {
    if (o >= 0) continue;
    next = std::find(next, moved.end(), false);
    o = next++ - moved.begin();
  }
  return {permute_by(a.builder(), x, std::move(order))};
}

Op permute_op() {
  std::vector<Alias> aliases = torch_names("permute", "(self, *dims)", permute) +
      torch_names("transpose", "(self, dim0, dim1)", transpose) + torch_names("swapaxes", "(self, axis0 -> dim0, axis1 -> dim1)", transpose) +
      torch_names("swapdims", "(self, dim0, dim1)", transpose) + torch_names("t", "(self)", two_dimensional_transpose) +
      torch_names("movedim", "(self, source, destination)", move_dims) + torch_names("moveaxis", "(self, source, destination)", move_dims) +
      torch_names("adjoint", "(self)", matrix_transpose) +
      names({"torch.Tensor.T", "torch.Tensor.H", "numpy.ndarray.T"}, "(self)", reversed_order) +
      names({"torch.Tensor.mT", "torch.Tensor.mH", "numpy.ndarray.mT"}, "(self)", matrix_transpose) + names({"numpy.matrix_transpose"}, "(x -> self)", matrix_transpose) +
      names({"numpy.transpose", "numpy.permute_dims"}, "(a -> self, axes -> dims = None)", permute) + names({"numpy.ndarray.transpose"}, "(self, *dims)", permute) +
      names({"numpy.swapaxes"}, "(a -> self, axis1 -> dim0, axis2 -> dim1)", transpose) + names({"numpy.ndarray.swapaxes"}, "(self, axis1 -> dim0, axis2 -> dim1)", transpose) +
      names({"numpy.moveaxis"}, "(a -> self, source, destination)", move_dims);
  const auto order = [](const OpQuery& q) {
    const auto dims = q.integers("dims");
    TENON_USER_CHECK(dims.size() == q.type(0).rank(), "permute takes {} dimensions, {} given", q.type(0).rank(), dims.size());
    std::vector<std::size_t> all;
    for (const Dim& d : dims) all.push_back(static_cast<std::size_t>(infer::wrap_dim(d.constant(), dims.size())));
    auto sorted = all;
    std::ranges::sort(sorted);
    TENON_USER_CHECK(std::ranges::adjacent_find(sorted) == sorted.end(), "a dimension appears twice in 'dims'");
    return all;
  };
  Op op = movement("permute", "(Tensor self, int[] dims) -> Tensor",
                   [order](const OpQuery& q) {
                     Shape shape;
                     for (std::size_t d : order(q)) shape.push_back(q.type(0).shape[d]);
                     return shape;
                   },
                   [order](Scalars&, const OpQuery& q, std::span<const Scalar> at) {
                     std::vector<Scalar> index(at.size());
                     const auto dims = order(q);
                     for (std::size_t i = 0; i < dims.size(); ++i) index[dims[i]] = at[i];
                     return index;
                   },
                   std::move(aliases));
  op.samples = [] {
    const auto dims = [](std::vector<Dim> d) { return ir::Attributes{{"dims", std::move(d)}}; };
    return movement_samples({4, 3, 5}, {dims({0, 1, 2}), dims({2, 0, 1}), dims({0, 2, 1}), dims({-1, -2, -3})});
  };
  return op;
}

// ---- expand

/// -1 keeps a dimension; new dimensions come in front.
Shape expanded_shape(const ir::Graph& graph, const Shape& old, std::vector<Dim> size) {
  TENON_USER_CHECK(size.size() >= old.size(), "expand: the number of sizes provided ({}) must be greater or equal to the number of dimensions in the tensor ({})", size.size(), old.size());
  const std::size_t lead = size.size() - old.size();
  for (std::size_t i = 0; i < size.size(); ++i) {
    if (size[i] == Dim(-1)) {
      TENON_USER_CHECK(i >= lead, "expand: -1 is not allowed in a leading, non-existing dimension {}", i);
      size[i] = old[i - lead];
    } else if (i >= lead && !(old[i - lead] == Dim(1))) {
      infer::require_equal(graph, size[i], old[i - lead], "the expanded size and the existing size");
    }
  }
  return size;
}

Values expand(ForeignArguments& a) {
  const ir::ValueId x = a.tensor(a.value("self"));
  return {expand_to(a.builder(), x, expanded_shape(a.graph(), a.type(x).shape, a.integers("size")))};
}

Values expand_as(ForeignArguments& a) {
  const ir::ValueId x = a.value("self");
  return {expand_to(a.builder(), x, expanded_shape(a.graph(), a.type(x).shape, a.type(a.value("other")).shape))};
}

Values broadcast_all(ForeignArguments& a) {
  a.container = a.numpy() ? Container::tuple : Container::tuple;
  Values all = a.values("tensors");
  Shape shape;
  for (ir::ValueId v : all) shape = infer::broadcast(a.graph(), shape, a.type(v).shape);
  for (ir::ValueId& v : all) v = expand_to(a.builder(), v, shape);
  return all;
}

Op expand_op() {
  std::vector<Alias> aliases = names({"torch.Tensor.expand"}, "(self, *size, implicit=False)", expand) + names({"torch.Tensor.expand_as"}, "(self, other)", expand_as) +
      torch_names("broadcast_to", "(self, size)", expand) + names({"numpy.broadcast_to"}, "(array -> self, shape -> size, subok=False)", expand) +
      names({"torch.broadcast_tensors"}, "(*tensors)", broadcast_all) + names({"numpy.broadcast_arrays"}, "(*tensors, subok=False)", broadcast_all);
  const auto shape = [](const OpQuery& q) { return expanded_shape(q.graph(), q.type(0).shape, q.integers("size")); };
  Op op = movement("expand", "(Tensor self, int[] size) -> Tensor", shape,
                   [](Scalars& s, const OpQuery& q, std::span<const Scalar> at) {
                     const Shape& old = q.type(0).shape;
                     std::vector<Scalar> index;
                     for (std::size_t i = 0; i < old.size(); ++i)
                       index.push_back(old[i] == Dim(1) ? s.constant(DType::i64, std::int64_t{0}) : at[at.size() - old.size() + i]);
                     return index;
                   },
                   std::move(aliases));
  op.samples = [] {
    const auto size = [](std::vector<Dim> d) { return ir::Attributes{{"size", std::move(d)}}; };
    return movement_samples({3, 1, 4}, {size({3, 5, 4}), size({2, 3, 1, 4}), size({-1, 6, -1}), size({3, 0, 4})});
  };
  return op;
}

// ---- slice, select

std::vector<Dim> slice_attributes(const OpQuery& q) {
  const Dim size = q.type(0).shape.at(real_dim(q));
  const Dim start = q.integer("start", Dim(0)), end = q.integer("end", size);
  const SliceBounds at = slice_bounds(q.graph(), size, {start, end, q.integer("step", Dim(1))});
  TENON_USER_CHECK(!at.backward, "step must be positive; use flip to go backwards");
  return {at.start, at.end, Dim(at.step)};
}

Values narrow(ForeignArguments& a) {
  const ir::ValueId x = a.value("self");
  const auto dim = static_cast<std::size_t>(a.dim("dim", a.type(x).rank()));
  const Dim size = a.type(x).shape.at(dim);
  Dim start = a.integer("start");
  if (start.is_constant() && start.constant() < 0) start = start + size;
  const Dim end = start + a.integer("length");
  const infer::Interval room = infer::range(a.graph(), size - end);
  TENON_USER_CHECK(room.most >= 0, "start ({}) + length ({}) exceeds dimension size ({}).", infer::text(a.graph(), start), infer::text(a.graph(), a.integer("length")), infer::text(a.graph(), size));
  return {slice_of(a.builder(), x, dim, {start, end, {}})};
}

Op slice_op() {
  Op op = movement("slice", "(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
                   [](const OpQuery& q) {
                     const auto at = slice_attributes(q);
                     Shape shape = q.type(0).shape;
                     const std::int64_t step = at[2].constant();
                     shape[real_dim(q)] = step == 1 ? at[1] - at[0] : floor_div(at[1] - at[0] + Dim(step - 1), Dim(step));
                     return shape;
                   },
                   [](Scalars& s, const OpQuery& q, std::span<const Scalar> at) {
                     const auto bounds = slice_attributes(q);
                     std::vector<Scalar> index(at.begin(), at.end());
                     IndexMath m(s);
                     Scalar& i = index[real_dim(q)];
                     i = m.add(m.mul(i, bounds[2]), bounds[0]);
                     return index;
                   },
                   torch_names("narrow", "(self, dim, start, length)", narrow));
  op.samples = [] {
    const auto slice = [](std::int64_t dim, std::int64_t start, std::int64_t end, std::int64_t step) {
      return ir::Attributes{{"dim", Dim(dim)}, {"end", Dim(end)}, {"start", Dim(start)}, {"step", Dim(step)}};
    };
    return movement_samples({7, 5, 6}, {slice(0, 2, 7, 1), slice(1, 0, 4, 2), slice(-1, 1, 6, 3), slice(0, -3, 100, 1), slice(2, 4, 4, 1)});
  };
  return op;
}

Dim selected(const OpQuery& q) {
  const Dim size = q.type(0).shape.at(real_dim(q)), index = q.integer("index");
  const infer::Interval range = infer::range(q.graph(), index);
  if (range.least < 0 && range.most >= 0) throw Exception(Code::unsupported, "an index whose sign is not known");
  const Dim at = range.most < 0 ? index + size : index;
  TENON_USER_CHECK(infer::range(q.graph(), at).most >= 0 && infer::range(q.graph(), size - at).most > 0, "index {} is out of bounds for dimension {} with size {}",
                   infer::text(q.graph(), index), real_dim(q), infer::text(q.graph(), size));
  return at;
}

Op select_op() {
  Op op = movement("select", "(Tensor self, int dim, int index) -> Tensor",
                   [](const OpQuery& q) {
                     selected(q);
                     Shape shape = q.type(0).shape;
                     shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(real_dim(q)));
                     return shape;
                   },
                   [](Scalars& s, const OpQuery& q, std::span<const Scalar> at) {
                     std::vector<Scalar> index(at.begin(), at.end());
                     index.insert(index.begin() + static_cast<std::ptrdiff_t>(real_dim(q)), s.extent(selected(q)));
                     return index;
                   },
                   torch_names("select", "(self, dim, index)", [](ForeignArguments& a) -> Values {
                     if (a.is_tensor("index")) throw Exception(Code::unsupported, "select with a tensor as index");
                     const ir::ValueId x = a.value("self");
                     return {select_of(a.builder(), x, static_cast<std::size_t>(a.dim("dim", a.type(x).rank())), a.integer("index"))};
                   }));
  op.samples = [] {
    const auto select = [](std::int64_t dim, std::int64_t index) { return ir::Attributes{{"dim", Dim(dim)}, {"index", Dim(index)}}; };
    return movement_samples({4, 5, 3}, {select(0, 3), select(1, 0), select(-1, -1)});
  };
  return op;
}

// ---- split: several slices

Values pieces(ForeignArguments& a, ir::ValueId x, std::size_t dim, const std::vector<Dim>& sizes) {
  a.container = a.numpy() ? Container::list : Container::tuple;
  Values all;
  Dim start(0);
  for (const Dim& n : sizes) {
    all.push_back(slice_of(a.builder(), x, dim, {start, start + n, {}}));
    start = start + n;
  }
  return all;
}

std::int64_t known_size(ForeignArguments& a, ir::ValueId x, std::size_t dim) {
  const Dim size = a.type(x).shape.at(dim);
  if (!size.is_constant()) throw Exception(error(Code::unsupported, "splitting a dimension whose size is not known: {}", infer::text(a.graph(), size)));
  return size.constant();
}

std::vector<Dim> equal_sizes(std::int64_t total, std::int64_t each) {
  TENON_USER_CHECK(each > 0, "split expects split_size be positive, but got {}", each);
  std::vector<Dim> sizes;
  for (std::int64_t at = 0; at < total || sizes.empty(); at += each) sizes.emplace_back(std::min(each, total - at));
  return sizes;
}

Values split(ForeignArguments& a) {
  const ir::ValueId x = a.value("self");
  const auto dim = static_cast<std::size_t>(a.dim("dim", a.type(x).rank()));
  if (a["split_size"].as<ForeignList>()) {
    const auto sizes = a.integers("split_size");
    Dim total(0);
    for (const Dim& n : sizes) total = total + n;
    infer::require_equal(a.graph(), total, a.type(x).shape.at(dim), "the sum of split sizes and the dimension");
    return pieces(a, x, dim, sizes);
  }
  return pieces(a, x, dim, equal_sizes(known_size(a, x, dim), a.integer("split_size").constant()));
}

Values chunk(ForeignArguments& a) {
  const ir::ValueId x = a.value("self");
  const auto dim = static_cast<std::size_t>(a.dim("dim", a.type(x).rank()));
  const std::int64_t size = known_size(a, x, dim), chunks = a.integer("chunks").constant();
  TENON_USER_CHECK(chunks > 0, "chunk expects `chunks` to be greater than 0, got: {}", chunks);
  return pieces(a, x, dim, equal_sizes(size, std::max<std::int64_t>(1, (size + chunks - 1) / chunks)));
}

/// torch.tensor_split, numpy.split and array_split: sections as equal as possible, or cut points.
Values split_at(ForeignArguments& a) {
  const ir::ValueId x = a.value("self");
  const auto dim = static_cast<std::size_t>(a.dim("dim", a.type(x).rank()));
  const std::int64_t size = known_size(a, x, dim);
  std::vector<Dim> sizes;
  if (a["sections"].as<ForeignList>()) {
    a.container = a.numpy() ? Container::list : Container::tuple;
    Values all;
    std::optional<Dim> start;
    for (const Dim& cut : a.integers("sections")) {
      all.push_back(slice_of(a.builder(), x, dim, {start, cut, {}}));
      start = cut;
    }
    all.push_back(slice_of(a.builder(), x, dim, {start, {}, {}}));
    return all;
  }
  const std::int64_t sections = a.integer("sections").constant();
  TENON_USER_CHECK(sections > 0, "number of sections must be larger than 0");
  for (std::int64_t i = 0; i < sections; ++i) sizes.emplace_back(size / sections + (i < size % sections));
  return pieces(a, x, dim, sizes);
}

Values equal_split(ForeignArguments& a) {
  const ir::ValueId x = a.value("self");
  if (a["sections"].as<Dim>()) {
    const std::int64_t size = known_size(a, x, static_cast<std::size_t>(a.dim("dim", a.type(x).rank())));
    TENON_USER_CHECK(size % a.integer("sections").constant() == 0, "array split does not result in an equal division");
  }
  return split_at(a);
}

Op unbind_op() {
  Op op;
  op.name = "unbind";
  op.schema = "(Tensor self, int dim=0) -> Tensor[]";
  op.aliases = torch_names("unbind", "(self, dim=0)", [](ForeignArguments& a) {
    a.container = Container::tuple;
    const ir::ValueId x = a.value("self");
    const std::int64_t dim = a.dim("dim", a.type(x).rank());
    known_size(a, x, static_cast<std::size_t>(dim));
    return a.call("unbind", {x}, {{"dim", Dim(dim)}});
  }) + torch_names("split", "(self, split_size, dim=0)", split) + names({"torch.Tensor.split_with_sizes", "torch.split_with_sizes"}, "(self, split_sizes -> split_size, dim=0)", split) +
      torch_names("chunk", "(self, chunks, dim=0)", chunk) + torch_names("tensor_split", "(self, indices_or_sections -> sections, dim=0)", split_at) +
      names({"numpy.split"}, "(ary -> self, indices_or_sections -> sections, axis -> dim = 0)", equal_split) +
      names({"numpy.array_split"}, "(ary -> self, indices_or_sections -> sections, axis -> dim = 0)", split_at) +
      names({"numpy.unstack"}, "(x -> self, *, axis -> dim = 0)");
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 1, 1);
    Shape shape = q.type(0).shape;
    const std::size_t dim = real_dim(q);
    if (!shape[dim].is_constant()) return error(Code::unsupported, "the number of results depends on {}", infer::text(q.graph(), shape[dim]));
    const auto count = static_cast<std::size_t>(shape[dim].constant());
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(dim));
    return infer::Types(count, ir::Type::tensor(q.type(0).dtype, shape, infer::device(q)));
  };
  op.decompose = [](NodeBuilder& b, const OpQuery& q) {
    Values all;
    const std::size_t dim = real_dim(q);
    const ir::ValueId x = q.operands()[0];
    const std::int64_t count = q.type(0).shape[dim].constant();
    for (std::int64_t i = 0; i < count; ++i) all.push_back(select_of(b, x, dim, Dim(i)));
    return all;
  };
  op.samples = [] { return movement_samples({3, 4}, {{{"dim", Dim(0)}}, {{"dim", Dim(-1)}}}); };
  return op;
}

// ---- flip, roll, repeat, diagonal, windows

Op flip_op() {
  const Adapt adapt = [](ForeignArguments& a) {
    const ir::ValueId x = a.value("self");
    return a.call("flip", {x}, {{"dims", a.dims("dims", a.type(x).rank())}});
  };
  const auto fixed = [](std::int64_t dim) {
    return [dim](ForeignArguments& a) { return a.call("flip", {a.value("self")}, {{"dims", std::vector<Dim>{Dim(dim)}}}); };
  };
  std::vector<Alias> aliases = torch_names("flip", "(self, *dims)", adapt) + names({"numpy.flip"}, "(m -> self, axis -> dims = None)", adapt) +
      torch_names("fliplr", "(self)", fixed(1)) + torch_names("flipud", "(self)", fixed(0)) + names({"numpy.fliplr"}, "(m -> self)", fixed(1)) + names({"numpy.flipud"}, "(m -> self)", fixed(0));
  Op op = movement("flip", "(Tensor self, int[] dims) -> Tensor", [](const OpQuery& q) { return q.type(0).shape; },
                   [](Scalars& s, const OpQuery& q, std::span<const Scalar> at) {
                     std::vector<Scalar> index(at.begin(), at.end());
                     for (const Dim& d : q.integers("dims")) {
                       const auto dim = static_cast<std::size_t>(infer::wrap_dim(d.constant(), at.size()));
                       if (dim < index.size()) index[dim] = s.sub(s.extent(q.type(0).shape[dim] - Dim(1)), at[dim]);
                     }
                     return index;
                   },
                   std::move(aliases));
  op.samples = [] {
    const auto dims = [](std::vector<Dim> d) { return ir::Attributes{{"dims", std::move(d)}}; };
    return movement_samples({4, 3, 5}, {dims({0}), dims({-1, 1}), dims({0, 1, 2}), dims({})});
  };
  return op;
}

Values roll_adapt(ForeignArguments& a) {
  const ir::ValueId x = a.value("self");
  const Shape shape = a.type(x).shape;
  std::vector<Dim> shifts = a.integers("shifts");
  if (!a.given("dims") || a.integers("dims").empty()) {
    const ir::ValueId flat = reshape_to(a.builder(), x, {ir::product(shape)});
    const ir::ValueId rolled = a.one("roll", {flat}, {{"dims", std::vector<Dim>{0}}, {"shifts", shifts}});
    return {reshape_to(a.builder(), rolled, shape)};
  }
  std::vector<Dim> dims = a.integers("dims");
  if (shifts.size() == 1) shifts.resize(dims.size(), shifts[0]);
  if (dims.size() == 1) dims.resize(shifts.size(), dims[0]);
  TENON_USER_CHECK(shifts.size() == dims.size(), "shifts and dimensions must align. shifts: {}, dims:{}", shifts.size(), dims.size());
  return a.call("roll", {x}, {{"dims", dims}, {"shifts", shifts}});
}

Op roll_op() {
  Op op = movement("roll", "(Tensor self, int[] shifts, int[] dims) -> Tensor", [](const OpQuery& q) { return q.type(0).shape; },
                   [](Scalars& s, const OpQuery& q, std::span<const Scalar> at) {
                     std::vector<Scalar> index(at.begin(), at.end());
                     const auto shifts = q.integers("shifts"), dims = q.integers("dims");
                     IndexMath m(s);
                     for (std::size_t k = 0; k < dims.size(); ++k) {
                       const auto dim = static_cast<std::size_t>(infer::wrap_dim(dims[k].constant(), at.size()));
                       const Dim size = q.type(0).shape[dim];
                       if (size == Dim(0)) continue;
                       // mod(-shift, size) may be symbolic; then one conditional subtraction wraps.
                       const Scalar moved = m.add(index[dim], mod(Dim(0) - shifts[k], size));
                       index[dim] = s.select(s.ge(moved, m.of(size)), s.sub(moved, m.of(size)), moved);
                     }
                     return index;
                   },
                   torch_names("roll", "(self, shifts, dims=None)", roll_adapt) + names({"numpy.roll"}, "(a -> self, shift -> shifts, axis -> dims = None)", roll_adapt));
  op.samples = [] {
    const auto roll = [](std::vector<Dim> shifts, std::vector<Dim> dims) { return ir::Attributes{{"dims", std::move(dims)}, {"shifts", std::move(shifts)}}; };
    return movement_samples({4, 5}, {roll({1}, {0}), roll({-7}, {1}), roll({2, 3}, {0, -1}), roll({0}, {0})});
  };
  return op;
}

/// One count a dimension of the tensor, which grows dimensions in front; torch.tile and numpy.tile also grow the counts.
Adapt repeat_adapt(bool grow_counts) {
  return [grow_counts](ForeignArguments& a) -> Values {
    ir::ValueId x = a.value("self");
    std::vector<Dim> counts = a.integers("repeats");
    Shape shape = a.type(x).shape;
    TENON_USER_CHECK(grow_counts || counts.size() >= shape.size(), "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
    while (counts.size() < shape.size()) counts.insert(counts.begin(), Dim(1));
    while (shape.size() < counts.size()) shape.insert(shape.begin(), Dim(1));
    return a.call("repeat", {reshape_to(a.builder(), x, shape)}, {{"repeats", counts}});
  };
}

Op repeat_op() {
  Op op = movement("repeat", "(Tensor self, int[] repeats) -> Tensor",
                   [](const OpQuery& q) {
                     Shape shape = q.type(0).shape;
                     const auto repeats = q.integers("repeats");
                     TENON_USER_CHECK(repeats.size() == shape.size(), "takes {} counts, one a dimension; {} given", shape.size(), repeats.size());
                     for (std::size_t i = 0; i < shape.size(); ++i) shape[i] = shape[i] * repeats[i];
                     return shape;
                   },
                   [](Scalars& s, const OpQuery& q, std::span<const Scalar> at) {
                     std::vector<Scalar> index(at.begin(), at.end());
                     const auto repeats = q.integers("repeats");
                     IndexMath m(s);
                     for (std::size_t i = 0; i < index.size(); ++i)
                       if (!(repeats[i] == Dim(1))) index[i] = m.mod(at[i], q.type(0).shape[i]);
                     return index;
                   },
                   names({"torch.Tensor.repeat"}, "(self, *repeats)", repeat_adapt(false)) + names({"torch.tile"}, "(self, dims -> repeats)", repeat_adapt(true)) +
                       names({"torch.Tensor.tile"}, "(self, *repeats)", repeat_adapt(true)) + names({"numpy.tile"}, "(A -> self, reps -> repeats)", repeat_adapt(true)));
  op.samples = [] {
    const auto repeats = [](std::vector<Dim> d) { return ir::Attributes{{"repeats", std::move(d)}}; };
    return movement_samples({3, 1, 4}, {repeats({2, 1, 1}), repeats({1, 5, 3}), repeats({1, 1, 0})});
  };
  return op;
}

Values repeat_each_adapt(ForeignArguments& a) {
  ir::ValueId x = a.value("self");
  if (!a["repeats"].as<Dim>()) throw Exception(Code::unsupported, "repeats that differ by element");
  std::int64_t dim = 0;
  if (!a.given("dim")) x = reshape_to(a.builder(), x, {ir::product(a.type(x).shape)});
  else dim = a.dim("dim", a.type(x).rank());
  return a.call("repeat_interleave", {x}, {{"dim", Dim(dim)}, {"repeats", a.integer("repeats")}});
}

Op repeat_each_op() {
  Op op = movement("repeat_interleave", "(Tensor self, int repeats, int dim) -> Tensor",
                   [](const OpQuery& q) {
                     Shape shape = q.type(0).shape;
                     shape[real_dim(q)] = shape[real_dim(q)] * q.integer("repeats");
                     return shape;
                   },
                   [](Scalars& s, const OpQuery& q, std::span<const Scalar> at) {
                     std::vector<Scalar> index(at.begin(), at.end());
                     index[real_dim(q)] = IndexMath(s).floor_div(index[real_dim(q)], q.integer("repeats"));
                     return index;
                   },
                   torch_names("repeat_interleave", "(self, repeats, dim=None, *, output_size=None)", repeat_each_adapt) +
                       names({"numpy.repeat"}, "(a -> self, repeats, axis -> dim = None)", repeat_each_adapt) +
                       names({"numpy.ndarray.repeat"}, "(self, repeats, axis -> dim = None)", repeat_each_adapt));
  op.samples = [] { return movement_samples({3, 4}, {{{"dim", Dim(0)}, {"repeats", Dim(3)}}, {{"dim", Dim(1)}, {"repeats", Dim(1)}}}); };
  return op;
}

Op diagonal_op() {
  const auto dims = [](const OpQuery& q) {
    const std::size_t rank = q.type(0).rank();
    return std::pair{static_cast<std::size_t>(infer::wrap_dim(q.constant_integer("dim1", 0), rank)), static_cast<std::size_t>(infer::wrap_dim(q.constant_integer("dim2", 1), rank))};
  };
  Op op = movement("diagonal", "(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor",
                   [dims](const OpQuery& q) {
                     const auto [d1, d2] = dims(q);
                     TENON_USER_CHECK(d1 != d2, "diagonal dimensions cannot be identical");
                     const std::int64_t offset = q.constant_integer("offset", 0);
                     Shape shape;
                     for (std::size_t i = 0; i < q.type(0).rank(); ++i)
                       if (i != d1 && i != d2) shape.push_back(q.type(0).shape[i]);
                     const Dim rows = q.type(0).shape[d1] - Dim(std::max<std::int64_t>(0, -offset)), columns = q.type(0).shape[d2] - Dim(std::max<std::int64_t>(0, offset));
                     shape.push_back(infer::clamped(q.graph(), min(rows, columns), Dim(0), Dim(INT64_MAX)));
                     return shape;
                   },
                   [dims](Scalars& s, const OpQuery& q, std::span<const Scalar> at) {
                     const auto [d1, d2] = dims(q);
                     const std::int64_t offset = q.constant_integer("offset", 0);
                     std::vector<Scalar> index;
                     IndexMath m(s);
                     std::size_t next = 0;
                     for (std::size_t i = 0; i < q.type(0).rank(); ++i) {
                       if (i == d1) index.push_back(m.add(at.back(), Dim(std::max<std::int64_t>(0, -offset))));
                       else if (i == d2) index.push_back(m.add(at.back(), Dim(std::max<std::int64_t>(0, offset))));
                       else index.push_back(at[next++]);
                     }
                     return index;
                   },
                   torch_names("diagonal", "(self, offset=0, dim1=0, dim2=1)") + names({"numpy.diagonal"}, "(a -> self, offset=0, axis1 -> dim1 = 0, axis2 -> dim2 = 1)") +
                       names({"numpy.ndarray.diagonal"}, "(self, offset=0, axis1 -> dim1 = 0, axis2 -> dim2 = 1)"));
  op.samples = [] {
    const auto set = [](std::int64_t offset, std::int64_t d1, std::int64_t d2) { return ir::Attributes{{"dim1", Dim(d1)}, {"dim2", Dim(d2)}, {"offset", Dim(offset)}}; };
    return movement_samples({4, 5, 3}, {set(0, 0, 1), set(1, 1, 2), set(-2, 0, -1), set(9, 0, 1)});
  };
  return op;
}

/// Windows of `size` elements every `step` elements along a dimension; the window is the last dimension.
Op unfold_op() {
  Op op = movement("unfold", "(Tensor self, int dim, int size, int step) -> Tensor",
                   [](const OpQuery& q) {
                     Shape shape = q.type(0).shape;
                     const std::size_t dim = real_dim(q);
                     const std::int64_t step = q.constant_integer("step");
                     const Dim size = q.integer("size");
                     TENON_USER_CHECK(step > 0, "step is {} but must be > 0", step);
                     TENON_USER_CHECK(infer::range(q.graph(), shape[dim] - size).most >= 0, "maximum size for tensor at dimension {} is {} but size is {}", dim, infer::text(q.graph(), shape[dim]), infer::text(q.graph(), size));
                     shape[dim] = step == 1 ? shape[dim] - size + Dim(1) : floor_div(shape[dim] - size, Dim(step)) + Dim(1);
                     shape.push_back(size);
                     return shape;
                   },
                   [](Scalars& s, const OpQuery& q, std::span<const Scalar> at) {
                     std::vector<Scalar> index(at.begin(), at.end() - 1);
                     Scalar& i = index[real_dim(q)];
                     i = s.add(IndexMath(s).mul(i, q.integer("step")), at.back());
                     return index;
                   },
                   names({"torch.Tensor.unfold"}, "(self, dimension -> dim, size, step)"));
  op.samples = [] {
    const auto set = [](std::int64_t dim, std::int64_t size, std::int64_t step) { return ir::Attributes{{"dim", Dim(dim)}, {"size", Dim(size)}, {"step", Dim(step)}}; };
    return movement_samples({7, 5}, {set(0, 3, 1), set(1, 2, 2), set(-1, 5, 1)});
  };
  return op;
}

}  // namespace

Family movement_ops() {
  return {reshape_op(), permute_op(), expand_op(), slice_op(), select_op(), unbind_op(), flip_op(), roll_op(), repeat_op(), repeat_each_op(), diagonal_op(), unfold_op()};
}

}  // namespace tenon::ops
