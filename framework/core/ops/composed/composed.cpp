// Functions of torch and NumPy that rearrange with several ops: diagonals, grids, turns, channels and pixels. No op is declared here: the
// names belong to `cat`.
#include <algorithm>
#include <cmath>

#include "core/ops/notation/formula.h"
#include "core/ops/notation/window.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::Shape;
using V = ir::ValueId;

// ---- diagonals

/// A matrix whose diagonal `offset` is the last dimension of x, and the mask of that diagonal.
struct OnDiagonal {
  V mask, values;
};

OnDiagonal on_diagonal(ForeignArguments& a, V x, const Dim& rows, const Dim& columns, std::int64_t offset) {
  Formula f(a);
  const V mask = a.one("eye", {}, {{"dtype", DType::b8}, {"k", Dim(offset)}, {"m", columns}, {"n", rows}});
  // Above the main diagonal an element's row is its place, below it is the column.
  const bool by_row = offset >= 0;
  const std::size_t rank = f.rank(x);
  std::vector<Dim> before(rank, Dim(0)), after = before;
  after.back() = (by_row ? rows : columns) - f.shape(x).back();
  V line = x;
  if (!(after.back() == Dim(0))) line = a.one("pad", {x}, {{"after", after}, {"before", before}, {"mode", std::string("constant")}, {"value", 0.0}});
  Shape shape = f.shape(line);
  shape.insert(by_row ? shape.end() : shape.end() - 1, Dim(1));
  return {mask, reshape_to(a.builder(), line, shape)};
}

/// The order that moves the last two dimensions to dim1 and dim2.
std::vector<std::int64_t> last_two_to(std::size_t rank, std::int64_t dim1, std::int64_t dim2) {
  std::vector<std::int64_t> order(rank, -1);
  order[static_cast<std::size_t>(dim1)] = static_cast<std::int64_t>(rank) - 2;
  order[static_cast<std::size_t>(dim2)] = static_cast<std::int64_t>(rank) - 1;
  std::int64_t next = 0;
  for (std::int64_t& d : order)
    if (d < 0) d = next++;
  return order;
}

V embedded(ForeignArguments& a, V x, std::int64_t offset, std::int64_t dim1, std::int64_t dim2) {
  Formula f(a);
  const Dim n = f.shape(x).back() + Dim(std::abs(offset));
  const OnDiagonal d = on_diagonal(a, x, n, n, offset);
  const V zero = is_float(f.dtype(x)) ? f.number(0) : is_bool(f.dtype(x)) ? a.builder().literal(false) : f.integer(0);
  const V square = a.builder().one("where", {d.mask, d.values, zero});
  TENON_USER_CHECK(dim1 != dim2, "diagonal dimensions cannot be identical");
  return permute_by(a.builder(), square, last_two_to(f.rank(square), dim1, dim2));
}

Values diag_embed(ForeignArguments& a) {
  const V x = a.value("self");
  const std::size_t rank = a.type(x).rank() + 1;
  return {embedded(a, x, a.integer("offset", Dim(0)).constant(), infer::wrap_dim(a.integer("dim1", Dim(-2)).constant(), rank), infer::wrap_dim(a.integer("dim2", Dim(-1)).constant(), rank))};
}

Values diag(ForeignArguments& a) {
  const V x = a.tensor(a.value("self"));
  const Dim offset = a.integer("diagonal", Dim(0));
  if (a.type(x).rank() == 1) return {embedded(a, x, offset.constant(), 0, 1)};
  TENON_USER_CHECK(a.type(x).rank() == 2, "diag(): Supports 1D or 2D tensors. Got {}D", a.type(x).rank());
  return a.call("diagonal", {x}, {{"dim1", Dim(0)}, {"dim2", Dim(1)}, {"offset", offset}});
}

Values diagflat(ForeignArguments& a) {
  const V x = a.tensor(a.value("self"));
  return {embedded(a, reshape_to(a.builder(), x, {ir::product(a.type(x).shape)}), a.integer("offset", Dim(0)).constant(), 0, 1)};
}

Values diagonal_scatter(ForeignArguments& a) {
  Formula f(a);
  const V self = a.value("self"), src = a.value("src");
  const std::size_t rank = f.rank(self);
  const std::int64_t offset = a.integer("offset", Dim(0)).constant(), dim1 = infer::wrap_dim(a.integer("dim1", Dim(0)).constant(), rank),
                     dim2 = infer::wrap_dim(a.integer("dim2", Dim(1)).constant(), rank);
  TENON_USER_CHECK(rank >= 2 && f.rank(src) + 1 == rank && dim1 != dim2, "diagonal_scatter(): src has {} dimensions for self of {}", f.rank(src), rank);
  const Dim rows = f.shape(self)[static_cast<std::size_t>(dim1)], columns = f.shape(self)[static_cast<std::size_t>(dim2)];
  if (!rows.is_constant() || !columns.is_constant()) throw Exception(Code::unsupported, "diagonal_scatter of a size that varies");
  Shape slice = f.shape(self);
  for (const std::int64_t dim : {std::max(dim1, dim2), std::min(dim1, dim2)}) slice.erase(slice.begin() + dim);
  slice.emplace_back(std::max<std::int64_t>(0, std::min(rows.constant() + std::min<std::int64_t>(offset, 0), columns.constant() - std::max<std::int64_t>(offset, 0))));
  for (std::size_t i = 0; i < slice.size(); ++i) infer::require_equal(a.graph(), f.shape(src)[i], slice[i], fmt::format("sizes of dimension {} of src", i));
  const OnDiagonal d = on_diagonal(a, src, rows, columns, offset);
  // As a matrix in the last two dimensions, then back.
  const auto order = last_two_to(rank, dim1, dim2);
  std::vector<std::int64_t> last(rank);
  for (std::size_t i = 0; i < rank; ++i) last[static_cast<std::size_t>(order[i])] = static_cast<std::int64_t>(i);
  const V matrix = permute_by(a.builder(), self, last);
  return {permute_by(a.builder(), f.where(d.mask, d.values, matrix), order)};
}

// ---- grids and blocks

Values tensor_list(ForeignArguments& a) {
  const ForeignList* list = a["tensors"].as<ForeignList>();
  if (!list) throw Exception(Code::unsupported, "this form of a list of tensors");
  if (list->size() == 1 && (*list)[0].as<ForeignList>()) list = (*list)[0].as<ForeignList>();
  Values all;
  for (const ForeignArgument& x : *list) all.push_back(a.tensor(a.to_value(x)));
  return all;
}

Values meshgrid(ForeignArguments& a) {
  Values all = tensor_list(a);
  TENON_USER_CHECK(!all.empty(), "meshgrid expects a non-empty TensorList");
  if (!a.numpy() && !a.given("indexing")) throw Exception(Code::unsupported, "meshgrid without indexing, of which torch warns");
  const std::string indexing = a.text("indexing", a.numpy() ? "xy" : "ij");
  TENON_USER_CHECK(indexing == "ij" || indexing == "xy", "torch.meshgrid: indexing must be one of \"xy\" or \"ij\", but received: {}", indexing);
  a.refuse({"sparse"});
  const bool swap = indexing == "xy" && all.size() >= 2;
  Shape sizes;
  for (V v : all) {
    TENON_USER_CHECK(a.type(v).rank() <= 1, "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {}D", a.type(v).rank());
    sizes.push_back(ir::product(a.type(v).shape));
  }
  if (swap) std::swap(sizes[0], sizes[1]);
  for (std::size_t i = 0; i < all.size(); ++i) {
    Shape line(all.size(), Dim(1));
    line[swap && i < 2 ? 1 - i : i] = ir::product(a.type(all[i]).shape);
    all[i] = expand_to(a.builder(), reshape_to(a.builder(), all[i], line), sizes);
  }
  a.container = Container::tuple;
  return all;
}

Values cartesian_product(ForeignArguments& a) {
  Values all = tensor_list(a);
  TENON_USER_CHECK(!all.empty(), "cartesian_prod expects a non-empty list");
  if (all.size() == 1) return a.call("clone", {all[0]});
  Shape sizes;
  for (V v : all) {
    TENON_USER_CHECK(a.type(v).rank() == 1, "Expect a 1D vector, but got shape of {} dimensions", a.type(v).rank());
    sizes.push_back(a.type(v).shape[0]);
  }
  Shape column = sizes;
  column.emplace_back(1);
  for (std::size_t i = 0; i < all.size(); ++i) {
    Shape line(all.size(), Dim(1));
    line[i] = sizes[i];
    all[i] = reshape_to(a.builder(), expand_to(a.builder(), reshape_to(a.builder(), all[i], line), sizes), {ir::product(sizes), Dim(1)});
  }
  return a.call("cat", all, {{"dim", Dim(1)}});
}

/// Matrices along the diagonal of one.
Values block_diag(ForeignArguments& a) {
  Values all = tensor_list(a);
  a.promote(all, Promotion::common);
  Dim columns(0), left(0);
  for (V& v : all) {
    const Shape shape = a.type(v).shape;
    TENON_USER_CHECK(shape.size() <= 2, "torch.block_diag: Input tensors must have 2 or fewer dimensions. Got one of {}", shape.size());
    v = reshape_to(a.builder(), v, {shape.size() == 2 ? shape[0] : Dim(1), shape.empty() ? Dim(1) : shape.back()});
    columns = columns + a.type(v).shape[1];
  }
  for (V& v : all) {
    const Dim own = a.type(v).shape[1];
    v = a.one("pad", {v}, {{"after", std::vector<Dim>{Dim(0), columns - left - own}}, {"before", std::vector<Dim>{Dim(0), left}}, {"mode", std::string("constant")}, {"value", 0.0}});
    left = left + own;
  }
  return a.call("cat", all, {{"dim", Dim(0)}});
}

// ---- ranks and turns

/// torch.atleast_1d and so on, of one tensor or of several. In three dimensions a vector stands in the middle.
Adapt at_least(std::size_t rank) {
  return [rank](ForeignArguments& a) {
    const ForeignList* list = a["tensors"].as<ForeignList>();
    const bool several = list && (list->size() != 1 || (*list)[0].as<ForeignList>());
    Values all = tensor_list(a);
    for (V& v : all) {
      Shape shape = a.type(v).shape;
      if (rank == 3 && shape.size() == 1) shape.insert(shape.begin(), Dim(1));
      if (rank == 3 && shape.size() == 2) shape.emplace_back(1);
      while (shape.size() < rank) shape.insert(shape.begin(), Dim(1));
      v = reshape_to(a.builder(), v, shape);
    }
    if (several) a.container = Container::tuple;
    return all;
  };
}

Values rot90(ForeignArguments& a) {
  const V x = a.value("self");
  std::vector<Dim> dims = a.given("dims") ? a.integers("dims") : std::vector<Dim>{Dim(0), Dim(1)};
  TENON_USER_CHECK(dims.size() == 2 && a.type(x).rank() >= 2, "expected total rotation dims == 2, but got dims = {}", dims.size());
  for (Dim& d : dims) d = Dim(infer::wrap_dim(d.constant(), a.type(x).rank()));
  TENON_USER_CHECK(!(dims[0] == dims[1]), "expected rotation dims to be different");
  const auto flip = [&](V v, std::vector<Dim> over) { return a.one("flip", {v}, {{"dims", std::move(over)}}); };
  const std::int64_t turns = ((a.integer("k", Dim(1)).constant() % 4) + 4) % 4;
  std::vector<std::int64_t> order;
  for (std::size_t d = 0; d < a.type(x).rank(); ++d) order.push_back(static_cast<std::int64_t>(d));
  std::swap(order[static_cast<std::size_t>(dims[0].constant())], order[static_cast<std::size_t>(dims[1].constant())]);
  if (turns == 0) return a.call("clone", {x});
  if (turns == 2) return {flip(x, dims)};
  if (turns == 1) return {permute_by(a.builder(), flip(x, {dims[1]}), order)};
  return {permute_by(a.builder(), flip(x, {dims[0]}), order)};
}

Values sum_to_size(ForeignArguments& a) {
  Formula f(a);
  const V x = a.value("self");
  const std::vector<Dim> size = a.integers("size");
  const Shape shape = f.shape(x);
  TENON_USER_CHECK(size.size() <= shape.size(), "size of {} dimensions is not expandable to {}", size.size(), shape.size());
  std::vector<Dim> dims;
  const std::size_t lead = shape.size() - size.size();
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (d < lead || (size[d - lead] == Dim(1) && !(shape[d] == Dim(1)))) dims.emplace_back(static_cast<std::int64_t>(d));
  if (dims.empty()) return a.call("clone", {x});
  return {reshape_to(a.builder(), f.sum(x, dims), size)};
}

// ---- channels and pixels

/// [.., C * r * r, H, W] to [.., C, H * r, W * r], or back.
Adapt pixel_shuffle(bool back) {
  return [back](ForeignArguments& a) -> Values {
    const V x = a.value("self");
    const Shape shape = a.type(x).shape;
    const std::int64_t r = a.constant("factor");
    const std::size_t n = shape.size();
    TENON_USER_CHECK(n >= 3 && r > 0, "pixel_shuffle expects input to have at least 3 dimensions, but got input with {} dimension(s)", n);
    const Dim factor(r), c = shape[n - 3], h = shape[n - 2], w = shape[n - 1];
    Shape apart(shape.begin(), shape.end() - 3), joined = apart;
    std::vector<std::int64_t> order;
    for (std::size_t d = 0; d + 3 < n; ++d) order.push_back(static_cast<std::int64_t>(d));
    const auto lead = static_cast<std::int64_t>(n) - 3;
    if (back) {
      if (std::ranges::find(shape, Dim(0)) != shape.end()) throw Exception(Code::unsupported, "pixel_unshuffle of nothing");  // which torch gives as it is
      TENON_USER_CHECK(infer::is_divisible(h, factor) && infer::is_divisible(w, factor), "pixel_unshuffle expects height and width to be divisible by downscale_factor");
      apart.insert(apart.end(), {c, floor_div(h, factor), factor, floor_div(w, factor), factor});
      joined.insert(joined.end(), {c * factor * factor, floor_div(h, factor), floor_div(w, factor)});
      for (std::int64_t d : {0, 2, 4, 1, 3}) order.push_back(lead + d);
    } else {
      TENON_USER_CHECK(infer::is_divisible(c, factor * factor), "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor");
      const Dim channels = floor_div(c, factor * factor);
      apart.insert(apart.end(), {channels, factor, factor, h, w});
      joined.insert(joined.end(), {channels, h * factor, w * factor});
      for (std::int64_t d : {0, 3, 1, 4, 2}) order.push_back(lead + d);
    }
    return {reshape_to(a.builder(), permute_by(a.builder(), reshape_to(a.builder(), x, apart), order), joined)};
  };
}

Values channel_shuffle(ForeignArguments& a) {
  const V x = a.value("self");
  const Shape shape = a.type(x).shape;
  const Dim groups = a.integer("groups");
  TENON_USER_CHECK(shape.size() >= 3 && groups.is_constant() && groups.constant() > 0 && infer::is_divisible(shape[1], groups), "Number of channels must be divisible by groups");
  Shape apart = shape;
  apart[1] = floor_div(shape[1], groups);
  apart.insert(apart.begin() + 1, groups);
  std::vector<std::int64_t> order;
  for (std::size_t d = 0; d < apart.size(); ++d) order.push_back(static_cast<std::int64_t>(d));
  std::swap(order[1], order[2]);
  return {reshape_to(a.builder(), permute_by(a.builder(), reshape_to(a.builder(), x, apart), order), shape)};
}

/// torch.fft.fftshift: half of every dimension turned around.
Adapt half_roll(bool inverse) {
  return [inverse](ForeignArguments& a) {
    const V x = a.value("self");
    std::vector<Dim> shifts;
    const std::vector<Dim> dims = a.dims("dim", a.type(x).rank());
    for (const Dim& d : dims) {
      const Dim size = a.type(x).shape[static_cast<std::size_t>(d.constant())];
      shifts.push_back(floor_div(inverse ? size + Dim(1) : size, Dim(2)));
    }
    return a.call("roll", {x}, {{"dims", dims}, {"shifts", shifts}});
  };
}

Values trace(ForeignArguments& a) {
  Formula f(a);
  const V x = a.value("self");
  TENON_USER_CHECK(f.rank(x) == 2, "trace: expected a matrix, but got tensor with dim {}", f.rank(x));
  return {f.sum(a.one("diagonal", {x}, {{"dim1", Dim(0)}, {"dim2", Dim(1)}, {"offset", Dim(0)}}))};
}

Values matrix_diagonal(ForeignArguments& a) {
  const V x = a.value("self");
  return a.call("diagonal", {x}, {{"dim1", a.integer("dim1")}, {"dim2", a.integer("dim2")}, {"offset", a.integer("offset")}});
}

/// The number of classes must be given: it shapes the result.
Values one_hot(ForeignArguments& a) {
  Formula f(a);
  const V x = a.value("self");
  const std::int64_t classes = a.integer("num_classes", Dim(-1)).constant();
  if (classes <= 0 || f.dtype(x) != DType::i64) throw Exception(Code::unsupported, "one_hot without a number of classes");
  Shape shape = f.shape(x);
  shape.emplace_back(1);
  // A class out of range reads out of range, which fails the call as torch does.
  Values place{f.filled(0, DType::i64, {Dim(classes)}), reshape_to(a.builder(), x, {ir::product(f.shape(x))})};
  const V checked = f.add(reshape_to(a.builder(), a.one("index_select", place, {{"dim", Dim(0)}}), shape), reshape_to(a.builder(), x, shape));
  const V numbers = a.one("arange", {}, {{"dtype", DType::i64}, {"end", Dim(classes)}, {"start", Dim(0)}, {"step", Dim(1)}});
  return {f.cast(f.two("eq", checked, numbers), DType::i64)};
}

/// Columns 1, x, x^2, …
Values vander(ForeignArguments& a) {
  Formula f(a);
  V x = a.value("self");
  TENON_USER_CHECK(f.rank(x) >= 1, "Expected dim greater than 0.");
  const DType dtype = f.dtype(x);
  if (is_bool(dtype) || dtype == DType::f16 || dtype == DType::bf16) throw Exception(Code::unsupported, "vander of bools and halves");  // torch refuses them
  if (is_int(dtype)) x = f.cast(x, DType::i64);  // products along a dimension
  Shape shape = f.shape(x);
  const Dim count = a.given("N") ? a.integer("N") : shape.back();
  if (!count.is_constant() || count.constant() < 2) throw Exception(Code::unsupported, "vander of this size");
  shape.emplace_back(1);
  const V column = reshape_to(a.builder(), x, shape);
  Values columns{f.filled(1, f.dtype(x), shape)};
  for (std::int64_t k = 1; k < count.constant(); ++k) columns.push_back(k == 1 ? column : f.mul(columns.back(), column));
  return a.call("cat", columns, {{"dim", Dim(static_cast<std::int64_t>(shape.size()) - 1)}});
}

// ---- affine grids

/// The coordinates of the elements of one dimension, from -1 to 1: of the corners, or of the elements' middles.
ir::ValueId coordinates(NodeBuilder& b, const Dim& count, DType dtype, bool corners) {
  if (count == Dim(1)) return b.full(0.0, dtype, {Dim(1)});
  const ir::ValueId line = b.one("linspace", {}, {{"dtype", dtype}, {"end", 1.0}, {"start", -1.0}, {"steps", count}});
  return corners ? line : b.one("div", {b.one("mul", {line, b.literal(count - Dim(1))}), b.literal(count)});
}

/// torch.affine_grid_generator, as ATen's AffineGridGenerator.cpp: a column a coordinate, the last dimension's first, and one of ones, times `theta`.
Values affine_grid(ForeignArguments& a) {
  NodeBuilder& b = a.builder();
  const ir::ValueId theta = a.value("theta");
  const Shape shape = a.type(theta).shape;
  const DType t = a.type(theta).dtype;
  if (shape.size() != 3 || !is_float(t) || !shape[1].is_constant()) throw Exception(Code::unsupported, "affine grids of other matrices than one a picture");
  const auto rank = static_cast<std::size_t>(shape[1].constant());
  const std::vector<Dim> size = per_dim(a, "size", rank + 2, {});
  Shape places(size.begin() + 2, size.end());
  std::vector<ir::ValueId> columns;
  for (std::size_t k = rank; k-- > 0;) {
    if (!places[k].is_constant() || places[k].constant() < 1 || (places[k] == Dim(1) && size_of(t) < 4)) throw Exception(Code::unsupported, "affine grids of sizes that are not known, or of one half");
    Shape along(rank, Dim(1));
    along[k] = places[k];
    columns.push_back(b.one("expand", {reshape_to(b, coordinates(b, places[k], t, a.flag("align_corners")), along)}, {{"size", places}}));
  }
  columns.push_back(b.full(1.0, t, places));
  const Dim count = ir::product(places), width = shape[1] + Dim(1);
  const ir::ValueId flat = reshape_to(b, a.one("stack", columns, {{"dim", shape[1]}}), {Dim(1), count, width});
  const ir::ValueId base = b.one("expand", {flat}, {{"size", Shape{size[0], count, width}}});
  const ir::ValueId moved = a.one("bmm", {base, b.one("permute", {theta}, {{"dims", std::vector<Dim>{Dim(0), Dim(2), Dim(1)}}})});
  places.insert(places.begin(), size[0]);
  places.push_back(shape[1]);
  return {reshape_to(b, moved, places)};
}

}  // namespace

std::vector<Alias> composed_names() {
  return torch_names("diag_embed", "(self, offset=0, dim1=-2, dim2=-1)", diag_embed) +
         torch_names("diag", "(self, diagonal=0, *, out=None)", diag) +
         names({"numpy.diag"}, "(v -> self, k -> diagonal = 0)", diag) +
         torch_names("diagflat", "(self, offset=0)", diagflat) +
         names({"numpy.diagflat"}, "(v -> self, k -> offset = 0)", diagflat) +
         torch_names("diagonal_scatter", "(self, src, offset=0, dim1=0, dim2=1)", diagonal_scatter) +
         names({"torch.meshgrid"}, "(*tensors, indexing=None)", meshgrid) +
         names({"torch.cartesian_prod"}, "(*tensors)", cartesian_product) +
         names({"torch.block_diag"}, "(*tensors)", block_diag) +
         names({"torch.atleast_1d"}, "(*tensors)", at_least(1)) +
         names({"torch.atleast_2d"}, "(*tensors)", at_least(2)) +
         names({"torch.atleast_3d"}, "(*tensors)", at_least(3)) +
         torch_names("rot90", "(self, k=1, dims=None)", rot90) +
         names({"numpy.rot90"}, "(m -> self, k=1, axes -> dims = None)", rot90) +
         names({"torch.Tensor.sum_to_size"}, "(self, *size)", sum_to_size) +
         names({"torch.pixel_shuffle"}, "(self, upscale_factor -> factor)", pixel_shuffle(false)) +
         names({"torch.pixel_unshuffle"}, "(self, downscale_factor -> factor)", pixel_shuffle(true)) +
         names({"torch.channel_shuffle", "torch.native_channel_shuffle"}, "(self, groups)", channel_shuffle) +
         names({"torch.fft.fftshift"}, "(self, dim=None)", half_roll(false)) +
         names({"torch.fft.ifftshift"}, "(self, dim=None)", half_roll(true)) +
         names({"torch.affine_grid_generator"}, "(theta, size, align_corners)", affine_grid) +
         torch_names("trace", "(self)", trace) +
         names({"torch.one_hot"}, "(self, num_classes=-1)", one_hot) +
         names({"torch.linalg.vander"}, "(x -> self, *, N=None)", vander) +
         names({"torch.linalg.diagonal"}, "(A -> self, *, offset=0, dim1=-2, dim2=-1)", matrix_diagonal) +
         names({"numpy.linalg.diagonal"}, "(x -> self, *, offset=0, dim1=-2, dim2=-1)", matrix_diagonal) +
         names({"torch.alias_copy"}, "(self)", unchanged) +
         special_names();
}

}  // namespace tenon::ops
