// Views: the same elements in another shape, in another order of dimensions, or repeated without being copied.
#include <algorithm>
#include <numeric>

#include "core/ops/gradients/gradients.h"
#include "core/ops/notation/move.h"
#include "core/ops/size_questions.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::Shape;

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

/// Always a copy: no view's layout says in which order other than the rows' elements follow each other.
Values numpy_flatten(ForeignArguments& a) {
  if (const std::string order = a.text("order", "C"); order != "C") throw Exception(error(Code::unsupported, "order='{}'", order));
  return ravel(a);
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
  TENON_USER_CHECK(!shape.empty(), "unflatten() expects a tensor of at least one dimension");
  const auto dim = static_cast<std::size_t>(a.dim("dim", shape.size()));
  const Shape sizes = completed_shape(a.graph(), std::array{shape[dim]}, a.integers("sizes"));
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(dim));
  shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(dim), sizes.begin(), sizes.end());
  return {reshape_to(a.builder(), x, std::move(shape))};
}

bool is_one(ForeignArguments& a, const Dim& d) {
  if (d.is_constant()) return d.constant() == 1;
  const infer::Interval range = infer::range(a.graph(), d);
  if (range.least <= 1 && range.most >= 1) {
    ask::equal(d, Dim(1));
    throw Exception(error(Code::unsupported, "whether {} is 1 is not known", infer::text(a.graph(), d)));
  }
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
      TENON_USER_CHECK(!a.numpy() || at >= old.size() || is_one(a, old[at]),
                       "cannot select an axis to squeeze out which has size not equal to one");
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
  std::vector<Alias> aliases = torch_names("reshape", "(self, *shape)", view) +
                               names({"torch.Tensor.view"}, "(self, *shape, dtype=None)",
                                     [](ForeignArguments& a) {
                                       if (a.given("dtype") || (a["shape"].as<ForeignList>() && a["shape"].as<ForeignList>()->size() == 1 &&
                                                                a["shape"].as<ForeignList>()->front().as<DType>()))
                                         throw Exception(Code::unsupported, "a view as another dtype");
                                       return view(a);
                                     }) +
                               names({"torch.Tensor.view_as", "torch.Tensor.reshape_as"}, "(self, other)", reshape_like) +
                               torch_names("flatten", "(self, start_dim=0, end_dim=-1)", flatten) +
                               torch_names("ravel", "(self, order='C')", ravel) +
                               torch_names("unflatten", "(self, dim, sizes)", unflatten) +
                               torch_names("squeeze", "(self, dim=None)", squeeze) + torch_names("unsqueeze", "(self, dim)", unsqueeze) +
                               names({"numpy.reshape"}, "(a -> self, shape=None, order='C', *, newshape=None, copy=None)", numpy_reshape) +
                               names({"numpy.ndarray.reshape"}, "(self, *shape, order='C', newshape=None, copy=None)", numpy_reshape) +
                               names({"numpy.ravel"}, "(a -> self, order='C')", ravel) +
                               names({"numpy.ndarray.ravel"}, "(self, order='C')", ravel) + names({"numpy.ndarray.flatten"}, "(self, order='C')", numpy_flatten) +
                               names({"numpy.squeeze"}, "(a -> self, axis -> dim = None)", squeeze) +
                               names({"numpy.ndarray.squeeze"}, "(self, axis -> dim = None)", squeeze) +
                               names({"numpy.expand_dims"}, "(a -> self, axis -> dim)", unsqueeze);
  Op op = movement(
      "reshape", "(Tensor self, int[] shape) -> Tensor",
      [](const OpQuery& q) { return completed_shape(q.graph(), q.type(0).shape, q.integers("shape")); },
      [](Scalars& s, const OpQuery& q, std::span<const Scalar> at) {
        const Shape to = completed_shape(q.graph(), q.type(0).shape, q.integers("shape"));
        return reshaped_index(s, q.type(0).shape, to, at);
      },
      std::move(aliases));
  op.grad = written(gradients::reshape);
  op.samples = [] {
    const auto shape = [](std::vector<Dim> d) { return ir::Attributes{{"shape", std::move(d)}}; };
    return movement_samples({4, 6, 5}, {shape({24, 5}), shape({4, 30}), shape({2, 2, 3, 2, 5}), shape({120}), shape({8, 15}),
                                        shape({4, 1, 6, 5, 1}), shape({5, -1, 4})});
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
  TENON_USER_CHECK(a.type(a.value("self")).rank() <= 2, "t() expects a tensor with <= 2 dimensions, but self is {}D",
                   a.type(a.value("self")).rank());
  return reversed_order(a);
}

Values matrix_transpose(ForeignArguments& a) {
  const std::size_t rank = a.type(a.value("self")).rank();
  TENON_USER_CHECK(rank >= 2, "the transpose of matrices needs at least 2 dimensions, not {}", rank);
  return {transpose_of(a.builder(), a.value("self"))};
}

Values move_dims(ForeignArguments& a) {
  const ir::ValueId x = a.value("self");
  const std::size_t rank = a.type(x).rank();
  const auto from = constants(a.integers("source")), to = constants(a.integers("destination"));
  TENON_USER_CHECK(from.size() == to.size(), "movedim: source and destination must have the same number of elements");
  std::vector<std::int64_t> order(rank, -1), rest;
  std::vector<bool> moved(rank, false);
  for (std::size_t i = 0; i < from.size(); ++i) {
    const auto source = infer::wrap_dim(from[i], rank), target = infer::wrap_dim(to[i], rank);
    if (rank == 0) continue;  // a 0-d tensor takes 0 and -1, which mean nothing
    TENON_USER_CHECK(!moved[static_cast<std::size_t>(source)] && order[static_cast<std::size_t>(target)] < 0,
                     "movedim: repeated dim in source or destination");
    order[static_cast<std::size_t>(target)] = source;
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
  std::vector<Alias> aliases =
      torch_names("permute", "(self, *dims)", permute) + torch_names("transpose", "(self, dim0, dim1)", transpose) +
      torch_names("swapaxes", "(self, axis0 -> dim0, axis1 -> dim1)", transpose) +
      torch_names("swapdims", "(self, dim0, dim1)", transpose) + torch_names("t", "(self)", two_dimensional_transpose) +
      torch_names("movedim", "(self, source, destination)", move_dims) + torch_names("moveaxis", "(self, source, destination)", move_dims) +
      torch_names("adjoint", "(self)", matrix_transpose) +
      names({"torch.Tensor.T", "torch.Tensor.H", "numpy.ndarray.T"}, "(self)", reversed_order) +
      names({"torch.Tensor.mT", "torch.Tensor.mH", "numpy.ndarray.mT"}, "(self)", matrix_transpose) +
      names({"numpy.matrix_transpose", "numpy.linalg.matrix_transpose"}, "(x -> self)", matrix_transpose) +
      names({"numpy.transpose", "numpy.permute_dims"}, "(a -> self, axes -> dims = None)", permute) +
      names({"numpy.ndarray.transpose"}, "(self, *dims)", permute) +
      names({"numpy.swapaxes"}, "(a -> self, axis1 -> dim0, axis2 -> dim1)", transpose) +
      names({"numpy.ndarray.swapaxes"}, "(self, axis1 -> dim0, axis2 -> dim1)", transpose) +
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
  Op op = movement(
      "permute", "(Tensor self, int[] dims) -> Tensor",
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
  TENON_USER_CHECK(size.size() >= old.size(),
                   "expand: the number of sizes provided ({}) must be greater or equal to the number of dimensions in the tensor ({})",
                   size.size(), old.size());
  const std::size_t lead = size.size() - old.size();
  for (std::size_t i = 0; i < size.size(); ++i) {
    infer::require_plain_size(graph, size[i]);
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
  std::vector<Alias> aliases = names({"torch.Tensor.expand"}, "(self, *size, implicit=False)", expand) +
                               names({"torch.Tensor.expand_as"}, "(self, other)", expand_as) +
                               torch_names("broadcast_to", "(self, size)", expand) +
                               names({"numpy.broadcast_to"}, "(array -> self, shape -> size, subok=False)", expand) +
                               names({"torch.broadcast_tensors"}, "(*tensors)", broadcast_all) +
                               names({"numpy.broadcast_arrays"}, "(*tensors, subok=False)", broadcast_all);
  const auto shape = [](const OpQuery& q) { return expanded_shape(q.graph(), q.type(0).shape, q.integers("size")); };
  Op op = movement(
      "expand", "(Tensor self, int[] size) -> Tensor", shape,
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

}  // namespace

Family view_ops() { return {reshape_op(), permute_op(), expand_op()}; }

}  // namespace tenon::ops
