// Elements in another order or several times: flips, rolls, repeats, diagonals, windows.
#include <algorithm>
#include <numeric>

#include "core/ops/gradients/gradients.h"
#include "core/ops/notation/move.h"
#include "core/ops/size_questions.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::Shape;

Op flip_op() {
  const Adapt adapt = [](ForeignArguments& a) {
    const ir::ValueId x = a.value("self");
    const ForeignList* list = a["dims"].as<ForeignList>();
    if (list && list->empty() && !a.numpy()) return a.call("flip", {x}, {{"dims", std::vector<Dim>{}}});
    return a.call("flip", {x}, {{"dims", a.dims("dims", a.type(x).rank())}});
  };
  const auto fixed = [](std::int64_t dim) {
    return [dim](ForeignArguments& a) {
      const ir::ValueId x = a.value("self");
      TENON_USER_CHECK(static_cast<std::int64_t>(a.type(x).rank()) > dim, "Input must be >= {}-d.", dim + 1);
      return a.call("flip", {x}, {{"dims", std::vector<Dim>{Dim(dim)}}});
    };
  };
  std::vector<Alias> aliases = torch_names("flip", "(self, *dims)", adapt) +
                               names({"numpy.flip"}, "(m -> self, axis -> dims = None)", adapt) +
                               torch_names("fliplr", "(self)", fixed(1)) + torch_names("flipud", "(self)", fixed(0)) +
                               names({"numpy.fliplr"}, "(m -> self)", fixed(1)) + names({"numpy.flipud"}, "(m -> self)", fixed(0));
  Op op = movement(
      "flip", "(Tensor self, int[] dims) -> Tensor",
      [](const OpQuery& q) {
        std::vector<bool> seen(std::max<std::size_t>(q.type(0).rank(), 1));
        for (const Dim& d : q.integers("dims")) {
          const auto dim = static_cast<std::size_t>(infer::wrap_dim(d.constant(), q.type(0).rank()));
          TENON_USER_CHECK(!seen[dim], "dim {} appears multiple times in the list of dims", dim);
          seen[dim] = true;
        }
        return q.type(0).shape;
      },
      [](Scalars& s, const OpQuery& q, std::span<const Scalar> at) {
        std::vector<Scalar> index(at.begin(), at.end());
        for (const Dim& d : q.integers("dims")) {
          const auto dim = static_cast<std::size_t>(infer::wrap_dim(d.constant(), at.size()));
          if (dim < index.size()) index[dim] = s.sub(s.extent(q.type(0).shape[dim] - Dim(1)), at[dim]);
        }
        return index;
      },
      std::move(aliases));
  op.grad = written(gradients::flip);
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
  TENON_USER_CHECK(!shifts.empty(), "`shifts` required");
  if (!a.given("dims") || a.integers("dims").empty()) {
    TENON_USER_CHECK(shifts.size() == 1 || a.numpy(), "shifts and dimensions must align. shifts: {}, dims:0", shifts.size());
    const ir::ValueId flat = reshape_to(a.builder(), x, {ir::product(shape)});
    const ir::ValueId rolled = a.one("roll", {flat}, {{"dims", std::vector<Dim>(shifts.size(), Dim(0))}, {"shifts", shifts}});
    return {reshape_to(a.builder(), rolled, shape)};
  }
  std::vector<Dim> dims = a.integers("dims");
  if (a.numpy() && shifts.size() == 1) shifts.resize(dims.size(), shifts[0]);
  if (a.numpy() && dims.size() == 1) dims.resize(shifts.size(), dims[0]);
  TENON_USER_CHECK(shifts.size() == dims.size(), "shifts and dimensions must align. shifts: {}, dims:{}", shifts.size(), dims.size());
  return a.call("roll", {x}, {{"dims", dims}, {"shifts", shifts}});
}

Op roll_op() {
  Op op = movement(
      "roll", "(Tensor self, int[] shifts, int[] dims) -> Tensor",
      [](const OpQuery& q) {
        const std::size_t shifts = q.integers("shifts").size(), dims = q.integers("dims").size();
        TENON_USER_CHECK(shifts == dims, "shifts and dimensions must align. shifts: {}, dims:{}", shifts, dims);
        for (const Dim& d : q.integers("dims")) {
          infer::wrap_dim(d.constant(), q.type(0).rank());
          TENON_USER_CHECK(q.type(0).rank() > 0, "Dimension specified as {} but tensor has no dimensions", d.constant());
        }
        return q.type(0).shape;
      },
      [](Scalars& s, const OpQuery& q, std::span<const Scalar> at) {
        std::vector<Scalar> index(at.begin(), at.end());
        const auto shifts = q.integers("shifts"), dims = q.integers("dims");
        IndexMath m(s);
        for (std::size_t k = 0; k < dims.size(); ++k) {
          const auto dim = static_cast<std::size_t>(infer::wrap_dim(dims[k].constant(), at.size()));
          const Dim size = q.type(0).shape[dim];
          if (size == Dim(0)) continue;
          index[dim] = m.mod(m.add(index[dim], Dim(0) - shifts[k]), size);
        }
        return index;
      },
      torch_names("roll", "(self, shifts, dims=None)", roll_adapt) +
          names({"numpy.roll"}, "(a -> self, shift -> shifts, axis -> dims = None)", roll_adapt));
  op.traits.layout = ResultLayout::memory_format;
  op.samples = [] {
    const auto roll = [](std::vector<Dim> shifts, std::vector<Dim> dims) {
      return ir::Attributes{{"dims", std::move(dims)}, {"shifts", std::move(shifts)}};
    };
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
    TENON_USER_CHECK(grow_counts || counts.size() >= shape.size(),
                     "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor");
    while (counts.size() < shape.size()) counts.insert(counts.begin(), Dim(1));
    while (shape.size() < counts.size()) shape.insert(shape.begin(), Dim(1));
    return a.call("repeat", {reshape_to(a.builder(), x, shape)}, {{"repeats", counts}});
  };
}

Op repeat_op() {
  Op op = movement(
      "repeat", "(Tensor self, int[] repeats) -> Tensor",
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
      names({"torch.Tensor.repeat"}, "(self, *repeats)", repeat_adapt(false)) +
          names({"torch.tile"}, "(self, dims -> repeats)", repeat_adapt(true)) +
          names({"torch.Tensor.tile"}, "(self, *repeats)", repeat_adapt(true)) +
          names({"numpy.tile"}, "(A -> self, reps -> repeats)", repeat_adapt(true)));
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
  if (!a.given("dim"))
    x = reshape_to(a.builder(), x, {ir::product(a.type(x).shape)});
  else
    dim = a.dim("dim", a.type(x).rank());
  return a.call("repeat_interleave", {x}, {{"dim", Dim(dim)}, {"repeats", a.integer("repeats")}});
}

Op repeat_each_op() {
  Op op = movement(
      "repeat_interleave", "(Tensor self, int repeats, int dim) -> Tensor",
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
    return std::pair{static_cast<std::size_t>(infer::wrap_dim(q.constant_integer("dim1", 0), rank)),
                     static_cast<std::size_t>(infer::wrap_dim(q.constant_integer("dim2", 1), rank))};
  };
  Op op = movement(
      "diagonal", "(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor",
      [dims](const OpQuery& q) {
        const auto [d1, d2] = dims(q);
        TENON_USER_CHECK(d1 != d2, "diagonal dimensions cannot be identical");
        const std::int64_t offset = q.constant_integer("offset", 0);
        TENON_USER_CHECK(offset != INT64_MIN, "there is no diagonal {}", offset);
        Shape shape;
        for (std::size_t i = 0; i < q.type(0).rank(); ++i)
          if (i != d1 && i != d2) shape.push_back(q.type(0).shape[i]);
        const Dim rows = q.type(0).shape[d1] - Dim(std::max<std::int64_t>(0, -offset)),
                  columns = q.type(0).shape[d2] - Dim(std::max<std::int64_t>(0, offset));
        shape.push_back(infer::at_least(q.graph(), min(rows, columns), Dim(0)));
        return shape;
      },
      [dims](Scalars& s, const OpQuery& q, std::span<const Scalar> at) {
        const auto [d1, d2] = dims(q);
        const std::int64_t offset = q.constant_integer("offset", 0);
        std::vector<Scalar> index;
        IndexMath m(s);
        std::size_t next = 0;
        for (std::size_t i = 0; i < q.type(0).rank(); ++i) {
          if (i == d1)
            index.push_back(m.add(at.back(), Dim(std::max<std::int64_t>(0, -offset))));
          else if (i == d2)
            index.push_back(m.add(at.back(), Dim(std::max<std::int64_t>(0, offset))));
          else
            index.push_back(at[next++]);
        }
        return index;
      },
      torch_names("diagonal", "(self, offset=0, dim1=0, dim2=1)") +
          names({"numpy.diagonal"}, "(a -> self, offset=0, axis1 -> dim1 = 0, axis2 -> dim2 = 1)") +
          names({"numpy.ndarray.diagonal"}, "(self, offset=0, axis1 -> dim1 = 0, axis2 -> dim2 = 1)"));
  op.samples = [] {
    const auto set = [](std::int64_t offset, std::int64_t d1, std::int64_t d2) {
      return ir::Attributes{{"dim1", Dim(d1)}, {"dim2", Dim(d2)}, {"offset", Dim(offset)}};
    };
    return movement_samples({4, 5, 3}, {set(0, 0, 1), set(1, 1, 2), set(-2, 0, -1), set(9, 0, 1)});
  };
  return op;
}

/// numpy.lib.stride_tricks.sliding_window_view: windows at every place along some or all dimensions, whose sizes come last.
Values sliding_windows(ForeignArguments& a) {
  a.refuse({"writeable"});
  ir::ValueId x = a.value("self");
  const std::vector<Dim> sizes = a.integers("size"), dims = a.dims("dim", a.type(x).rank());
  TENON_USER_CHECK(sizes.size() == dims.size(), "{} window sizes for {} dimensions", sizes.size(), dims.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) x = a.one("unfold", {x}, {{"dim", dims[i]}, {"size", sizes[i]}, {"step", Dim(1)}});
  return {x};
}

/// torch's unfold takes a 0-d tensor for one of a single element, and gives the one window that it has.
Values windows_along(ForeignArguments& a) {
  const ir::ValueId x = a.value("self");
  const std::size_t rank = a.type(x).rank();
  const ir::Attributes windows{{"dim", Dim(a.dim("dim", rank))}, {"size", a.integer("size")}, {"step", a.integer("step")}};
  if (rank > 0) return a.call("unfold", {x}, windows);
  const ir::ValueId all = a.one("unfold", {reshape_to(a.builder(), x, {Dim(1)})}, windows);
  return {reshape_to(a.builder(), all, {a.integer("size")})};
}

/// Windows of `size` elements every `step` elements along a dimension; the window is the last dimension.
Op unfold_op() {
  Op op = movement(
      "unfold", "(Tensor self, int dim, int size, int step) -> Tensor",
      [](const OpQuery& q) {
        Shape shape = q.type(0).shape;
        const std::size_t dim = real_dim(q);
        const std::int64_t step = q.constant_integer("step");
        const Dim size = q.integer("size");
        TENON_USER_CHECK(step > 0, "step is {} but must be > 0", step);
        TENON_USER_CHECK(infer::may_be_positive_or_0(q.graph(), shape[dim] - size),
                         "maximum size for tensor at dimension {} is {} but size is {}", dim, infer::text(q.graph(), shape[dim]),
                         infer::text(q.graph(), size));
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
      names({"torch.Tensor.unfold"}, "(self, dimension -> dim, size, step)", windows_along) +
          names({"numpy.sliding_window_view"}, "(x -> self, window_shape -> size, axis -> dim = None, *, subok=False, writeable=False)", sliding_windows));
  op.grad = written(gradients::unfold);
  op.samples = [] {
    const auto set = [](std::int64_t dim, std::int64_t size, std::int64_t step) {
      return ir::Attributes{{"dim", Dim(dim)}, {"size", Dim(size)}, {"step", Dim(step)}};
    };
    return movement_samples({7, 5}, {set(0, 3, 1), set(1, 2, 2), set(-1, 5, 1)});
  };
  return op;
}

}  // namespace

Family rearranging_ops() { return {flip_op(), roll_op(), repeat_op(), repeat_each_op(), diagonal_op(), unfold_op()}; }

}  // namespace tenon::ops
