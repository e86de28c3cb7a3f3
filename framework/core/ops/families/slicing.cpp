// Parts of a tensor: slices, single places, splits.
#include <algorithm>
#include <numeric>

#include "core/ops/gradients/gradients.h"
#include "core/ops/notation/move.h"
#include "core/ops/size_questions.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::Shape;

// ---- slice, select

SliceBounds slice_attributes(const OpQuery& q) {
  const Dim size = q.type(0).shape.at(real_dim(q));
  const Dim start = q.integer("start", Dim(0)), end = q.integer("end", size);
  const SliceBounds at = slice_bounds(q.graph(), size, {start, end, q.integer("step", Dim(1))});
  TENON_USER_CHECK(!at.backward, "step must be positive; use flip to go backwards");
  return at;
}

Values narrow(ForeignArguments& a) {
  const ir::ValueId x = a.value("self");
  const auto dim = static_cast<std::size_t>(a.dim("dim", a.type(x).rank()));
  const Dim size = a.type(x).shape.at(dim);
  Dim start = a.integer("start");
  if (infer::is_negative(a.graph(), start)) start = start + size;
  TENON_USER_CHECK(infer::range(a.graph(), start).most >= 0, "start out of range: {} before the first of {}", infer::text(a.graph(), a.integer("start")),
                   infer::text(a.graph(), size));
  TENON_USER_CHECK(infer::range(a.graph(), a.integer("length")).most >= 0, "narrow(): length must be non-negative.");
  const Dim end = start + a.integer("length");
  const infer::Interval room = infer::range(a.graph(), size - end);
  TENON_USER_CHECK(room.most >= 0, "start ({}) + length ({}) exceeds dimension size ({}).", infer::text(a.graph(), start),
                   infer::text(a.graph(), a.integer("length")), infer::text(a.graph(), size));
  return {slice_of(a.builder(), x, dim, {start, end, {}})};
}

Op slice_op() {
  Op op = movement(
      "slice", "(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
      [](const OpQuery& q) {
        Shape shape = q.type(0).shape;
        shape[real_dim(q)] = slice_extent(slice_attributes(q));
        return shape;
      },
      [](Scalars& s, const OpQuery& q, std::span<const Scalar> at) {
        const auto bounds = slice_attributes(q);
        std::vector<Scalar> index(at.begin(), at.end());
        IndexMath m(s);
        Scalar& i = index[real_dim(q)];
        i = m.add(m.mul(i, bounds.step), bounds.start);
        return index;
      },
      torch_names("narrow", "(self, dim, start, length)", narrow) + names({"aten.slice", "aten.slice.Tensor"}, "(self, dim=0, start=None, end=None, step=1)"));
  op.grad = written(gradients::slice);
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
  const Dim at = infer::is_negative(q.graph(), index) ? index + size : index;
  TENON_USER_CHECK(infer::may_be_positive_or_0(q.graph(), at) && infer::may_be_positive_or_0(q.graph(), size - at - Dim(1)),
                   "index {} is out of bounds for dimension {} with size {}", infer::text(q.graph(), index), real_dim(q),
                   infer::text(q.graph(), size));
  return at;
}

Op select_op() {
  Op op = movement(
      "select", "(Tensor self, int dim, int index) -> Tensor",
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
  op.grad = written(gradients::select);
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
  if (!size.is_constant()) {
    ask::constant(size);
    throw Exception(error(Code::unsupported, "splitting a dimension whose size is not known: {}", infer::text(a.graph(), size)));
  }
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
  const std::int64_t sections = a.constant("sections");
  TENON_USER_CHECK(sections > 0, "number of sections must be larger than 0");
  for (std::int64_t i = 0; i < sections; ++i) sizes.emplace_back(size / sections + (i < size % sections));
  return pieces(a, x, dim, sizes);
}

Values equal_split(ForeignArguments& a) {
  const ir::ValueId x = a.value("self");
  if (a["sections"].as<Dim>()) {
    const std::int64_t size = known_size(a, x, static_cast<std::size_t>(a.dim("dim", a.type(x).rank())));
    const std::int64_t sections = a.constant("sections");
    TENON_USER_CHECK(sections > 0 && size % sections == 0, "array split does not result in an equal division");
  }
  return split_at(a);
}

/// torch.hsplit and so on: equal parts, or cut points, along a fixed dimension; vectors split along their only one.
Adapt split_along(std::size_t dim) {
  return [dim](ForeignArguments& a) {
    const ir::ValueId x = a.value("self");
    const std::size_t rank = a.type(x).rank(), own = dim == 1 && rank == 1 ? 0 : dim;
    TENON_USER_CHECK(rank > own, "splitting along dimension {} needs a tensor with more dimensions than {}", own, rank);
    const ForeignList* list = a["sections"].as<ForeignList>();
    if (list && list->size() == 1) a.bind("sections", ForeignArgument((*list)[0]));
    a.bind("dim", {Dim(static_cast<std::int64_t>(own))});
    return equal_split(a);
  };
}

Op unbind_op() {
  Op op;
  op.name = "unbind";
  op.schema = "(Tensor self, int dim=0) -> Tensor[]";
  op.aliases = torch_names("unbind", "(self, dim=0)",
                           [](ForeignArguments& a) {
                             a.container = Container::tuple;
                             const ir::ValueId x = a.value("self");
                             const std::int64_t dim = a.dim("dim", a.type(x).rank());
                             known_size(a, x, static_cast<std::size_t>(dim));
                             return a.call("unbind", {x}, {{"dim", Dim(dim)}});
                           }) +
               torch_names("split", "(self, split_size, dim=0)", split) +
               names({"torch.Tensor.split_with_sizes", "torch.split_with_sizes"}, "(self, split_sizes -> split_size, dim=0)", split) +
               torch_names("chunk", "(self, chunks, dim=0)", chunk) +
               torch_names("hsplit", "(self, *sections)", split_along(1)) +
               torch_names("vsplit", "(self, *sections)", split_along(0)) + torch_names("dsplit", "(self, *sections)", split_along(2)) +
               torch_names("tensor_split", "(self, indices_or_sections -> sections, dim=0)", split_at) +
               names({"numpy.split"}, "(ary -> self, indices_or_sections -> sections, axis -> dim = 0)", equal_split) +
               names({"numpy.array_split"}, "(ary -> self, indices_or_sections -> sections, axis -> dim = 0)", split_at) +
               names({"numpy.unstack"}, "(x -> self, *, axis -> dim = 0)");
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 1, 1);
    Shape shape = q.type(0).shape;
    const std::size_t dim = real_dim(q);
    if (!shape[dim].is_constant())
      return error(Code::unsupported, "the number of results depends on {}", infer::text(q.graph(), shape[dim]));
    const auto count = static_cast<std::size_t>(shape[dim].constant());
    constexpr std::size_t kMostResults = 1 << 16;
    if (count > kMostResults) return error(Code::unsupported, "{} results; a node has {} at most", count, kMostResults);
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(dim));
    return infer::Types(count, ir::Type::tensor(q.type(0).dtype, shape, infer::device(q)));
  };
  op.traits.is_inferred_whole = true;
  op.decompose = [](NodeBuilder& b, const OpQuery& q) {
    Values all;
    const std::size_t dim = real_dim(q);
    const ir::ValueId x = q.operands()[0];
    const std::int64_t count = q.type(0).shape[dim].constant();
    for (std::int64_t i = 0; i < count; ++i) all.push_back(select_of(b, x, dim, Dim(i)));
    return all;
  };
  op.grad = written(gradients::unbind);
  op.samples = [] { return movement_samples({3, 4}, {{{"dim", Dim(0)}}, {{"dim", Dim(-1)}}}); };
  return op;
}

}  // namespace

Family slicing_ops() { return {slice_op(), select_op(), unbind_op()}; }

}  // namespace tenon::ops
