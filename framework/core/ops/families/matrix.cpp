// Matrix products. mm and bmm are loop nests; everything else is made of them.
#include "core/ops/gradients/gradients.h"
#include "core/ops/notation/move.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::Shape;

const std::vector<DType> kMultiplied{DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8};

DType product_dtype(const OpQuery& q) {
  const DType t = infer::shared_dtype(q);
  TENON_USER_CHECK(is_int(t) || is_float(t), "takes integer and float tensors; given {}", name_of(t));
  return t;
}

void require_rank(const OpQuery& q, std::size_t operand, std::size_t rank) {
  TENON_USER_CHECK(q.type(operand).rank() == rank, "operand {} must have {} dimensions, not {}", operand, rank, q.type(operand).rank());
}

Reducer sum_of(DType t) {
  Scalars init, both, last;
  init.result(init.constant(t, std::int64_t{0}));
  both.result(both.add(both.parameter(0, t), both.parameter(1, t)));
  last.result(last.parameter(0, t));
  return {.accumulators = {t}, .init = init.take(), .combine = both.take(), .finish = last.take()};
}

/// The product over the last of the loops: `batch` leading loops, then rows, columns, depth.
LoopBody product_loop(const OpQuery& q, std::size_t batch) {
  const Shape &a = q.type(0).shape, &b = q.type(1).shape;
  Shape extents(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(batch + 1));
  extents.push_back(b[batch + 1]);
  extents.push_back(a[batch + 1]);
  Scalars s;
  const Scalar row = s.loop_index(batch), column = s.loop_index(batch + 1), depth = s.loop_index(batch + 2);
  std::vector<Scalar> left, right;
  for (std::size_t i = 0; i < batch; ++i) left.push_back(s.loop_index(i));
  right = left;
  left.insert(left.end(), {row, depth});
  right.insert(right.end(), {depth, column});
  s.result(s.mul(s.load(0, q.type(0).dtype, left), s.load(1, q.type(1).dtype, right)));
  return {.extents = std::move(extents), .reduced = 1, .element = s.take(), .reducer = sum_of(compute_type(q.type(0).dtype))};
}

std::vector<Sample> product_samples(std::vector<std::int64_t> batch) {
  std::vector<Sample> all;
  const auto add = [&](std::string name, DType t, std::int64_t m, std::int64_t k, std::int64_t n) -> Sample& {
    std::vector<std::int64_t> left = batch, right = batch;
    left.insert(left.end(), {m, k});
    right.insert(right.end(), {k, n});
    all.push_back({.name = std::move(name),
                   .operands = {{.dtype = t, .shape = left, .fill = Fill::unit}, {.dtype = t, .shape = right, .fill = Fill::unit}}});
    return all.back();
  };
  for (DType t : kMultiplied) add(std::string(name_of(t)), t, 5, 7, 6);
  add("row", DType::f32, 1, 9, 4);
  add("column", DType::f32, 4, 9, 1);
  add("depth_one", DType::f32, 4, 1, 3);
  add("depth_zero", DType::f32, 4, 0, 3);
  add("no_rows", DType::f32, 0, 3, 2);
  add("large", DType::f32, 33, 70, 65).tolerance = 4;  // sums of 70 terms that cancel: float32 in order is off by 3e-6
  if (batch.empty()) {
    add("left_transposed", DType::f32, 5, 7, 6).operands[0].strides = {{1, 5}};
    add("right_transposed", DType::f32, 5, 7, 6).operands[1].strides = {{1, 7}};
    add("right_expanded", DType::f32, 5, 7, 6).operands[1].strides = {{0, 1}};
  }
  return all;
}

Op product(std::string name, std::size_t batch) {
  Op op;
  op.aliases = torch_names(name);
  op.name = std::move(name);
  op.traits.layout = ResultLayout::row_major;
  op.schema = "(Tensor self, Tensor mat2) -> Tensor";
  op.promotion = Promotion::none;
  op.infer = [batch](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 2, 2);
    const DType t = product_dtype(q);
    require_rank(q, 0, batch + 2);
    require_rank(q, 1, batch + 2);
    const Shape &a = q.type(0).shape, &b = q.type(1).shape;
    for (std::size_t i = 0; i < batch; ++i) infer::require_equal(q.graph(), a[i], b[i], "batch dimensions");
    infer::require_equal(q.graph(), a[batch + 1], b[batch], "the inner dimensions of the product");
    Shape shape(a.begin(), a.end());
    shape[batch + 1] = b[batch + 1];
    return infer::one(q, t, std::move(shape));
  };
  op.loop = [batch](const OpQuery& q) { return product_loop(q, batch); };
  op.grad = written(gradients::matrix_product);
  op.samples = [batch] { return product_samples(std::vector<std::int64_t>(batch, 3)); };
  return op;
}

// ---- matmul: vectors, matrices and batches of them

Shape flattened(const Shape& batch, const Dim& rows, const Dim& columns) { return {ir::product(batch), rows, columns}; }

/// The product of tensors of at least two dimensions.
ir::ValueId batched(NodeBuilder& b, ir::ValueId x, ir::ValueId y) {
  const Shape xs = b.graph().type(x).shape, ys = b.graph().type(y).shape;
  if (xs.size() == 2 && ys.size() == 2) return b.one("mm", {x, y});
  const Dim rows = xs[xs.size() - 2], depth = xs.back(), columns = ys.back();
  const Shape x_batch(xs.begin(), xs.end() - 2), y_batch(ys.begin(), ys.end() - 2);
  if (y_batch.empty()) {  // one matrix for all rows of all batches
    const ir::ValueId flat = b.one("mm", {reshape_to(b, x, {ir::product(x_batch) * rows, depth}), y});
    Shape shape = x_batch;
    shape.insert(shape.end(), {rows, columns});
    return reshape_to(b, flat, shape);
  }
  const Shape batch = infer::broadcast(b.graph(), x_batch, y_batch);
  const auto prepared = [&](ir::ValueId v, const Shape& old) {
    Shape wide = batch;
    wide.insert(wide.end(), {old[old.size() - 2], old.back()});
    return reshape_to(b, expand_to(b, v, wide), flattened(batch, old[old.size() - 2], old.back()));
  };
  const ir::ValueId flat = b.one("bmm", {prepared(x, xs), prepared(y, ys)});
  Shape shape = batch;
  shape.insert(shape.end(), {rows, columns});
  return reshape_to(b, flat, shape);
}

Shape without(Shape shape, std::size_t from_end) {
  shape.erase(shape.end() - static_cast<std::ptrdiff_t>(from_end));
  return shape;
}

/// A one-dimensional left operand is a row, a right one a column; the dimension added for it goes away again.
ir::ValueId matmul(NodeBuilder& b, ir::ValueId x, ir::ValueId y) {
  const Shape xs = b.graph().type(x).shape, ys = b.graph().type(y).shape;
  if (xs.size() == 1) x = reshape_to(b, x, {Dim(1), xs[0]});
  if (ys.size() == 1) y = reshape_to(b, y, {ys[0], Dim(1)});
  const ir::ValueId result = batched(b, x, y);
  Shape shape = b.graph().type(result).shape;
  if (ys.size() == 1) shape = without(shape, 1);
  if (xs.size() == 1) shape = without(shape, ys.size() == 1 ? 1 : 2);
  return reshape_to(b, result, shape);
}

Shape matmul_shape(const OpQuery& q) {
  Shape x = q.type(0).shape, y = q.type(1).shape;
  TENON_USER_CHECK(!x.empty() && !y.empty(), "both arguments to matmul need to be at least 1D, but they are {}D and {}D", x.size(),
                   y.size());
  const bool row = x.size() == 1, column = y.size() == 1;
  if (row) x.insert(x.begin(), Dim(1));
  if (column) y.push_back(Dim(1));
  infer::require_equal(q.graph(), x.back(), y[y.size() - 2], "the inner dimensions of the product");
  Shape shape = infer::broadcast(q.graph(), std::span(x).first(x.size() - 2), std::span(y).first(y.size() - 2));
  if (!row) shape.push_back(x[x.size() - 2]);
  if (!column) shape.push_back(y.back());
  return shape;
}

std::vector<Sample> matmul_samples() {
  std::vector<Sample> all;
  const auto add = [&](std::string name, std::vector<std::int64_t> a, std::vector<std::int64_t> b, DType t = DType::f32) {
    all.push_back(
        {.name = std::move(name),
         .operands = {{.dtype = t, .shape = std::move(a), .fill = Fill::unit}, {.dtype = t, .shape = std::move(b), .fill = Fill::unit}}});
  };
  for (DType t : kMultiplied) add(std::string(name_of(t)), {4, 5}, {5, 3}, t);
  add("vectors", {6}, {6});
  add("matrix_vector", {4, 6}, {6});
  add("vector_matrix", {6}, {6, 4});
  add("batch_matrix", {2, 3, 4, 5}, {5, 6});
  add("batch_vector", {2, 4, 5}, {5});
  add("vector_batch", {5}, {2, 5, 3});
  add("batches", {2, 1, 4, 5}, {3, 5, 2});
  add("matrix_batch", {4, 5}, {3, 5, 2});
  add("no_batch", {0, 4, 5}, {0, 5, 2});
  return all;
}

/// Operands of one dtype: torch wants them equal, NumPy promotes.
Values same_dtype(ForeignArguments& a, Values xy) {
  for (ir::ValueId& v : xy) v = a.tensor(v);
  if (a.numpy()) a.promote(xy, Promotion::common);
  const DType t = a.type(xy[0]).dtype;
  if (a.numpy() && is_bool(t)) throw Exception(Code::unsupported, "products of bool matrices");
  TENON_USER_CHECK(a.type(xy[1]).dtype == t, "expected m1 and m2 to have the same dtype, but got: {} != {}", name_of(t),
                   name_of(a.type(xy[1]).dtype));
  return xy;
}

Values matmul_adapt(ForeignArguments& a) { return a.call("matmul", same_dtype(a, {a.value("self"), a.value("other")})); }

/// numpy.dot: products of scalars and of up to two-dimensional right operands, where it agrees with matmul.
Values numpy_dot(ForeignArguments& a) {
  const Values xy = same_dtype(a, {a.value("self"), a.value("other")});
  if (a.type(xy[0]).rank() == 0 || a.type(xy[1]).rank() == 0) return a.call("mul", xy);
  if (a.type(xy[1]).rank() > 2) throw Exception(Code::unsupported, "numpy.dot with a right operand of more than two dimensions");
  return a.call("matmul", xy);
}

/// numpy.inner: over the last dimensions of both.
Values inner(ForeignArguments& a) {
  Values xy = same_dtype(a, {a.value("self"), a.value("other")});
  if (a.type(xy[0]).rank() == 0 || a.type(xy[1]).rank() == 0) return a.call("mul", xy);
  if (a.type(xy[1]).rank() > 2) throw Exception(Code::unsupported, "inner with a right operand of more than two dimensions");
  if (a.type(xy[1]).rank() == 2) xy[1] = permute_by(a.builder(), xy[1], {1, 0});
  return a.call("matmul", xy);
}

Values outer(ForeignArguments& a) {
  Values xy{a.tensor(a.value("self")), a.tensor(a.value("other"))};
  TENON_USER_CHECK(a.numpy() || (a.type(xy[0]).rank() == 1 && a.type(xy[1]).rank() == 1),
                   "outer: Expected 1-D arguments, but got {}-D and {}-D", a.type(xy[0]).rank(), a.type(xy[1]).rank());
  xy[0] = reshape_to(a.builder(), xy[0], {Dim(-1), Dim(1)});
  xy[1] = reshape_to(a.builder(), xy[1], {Dim(1), Dim(-1)});
  return a.call("mul", xy);
}

Adapt vector_product(std::size_t left, std::size_t right, std::string_view name) {
  return [=](ForeignArguments& a) {
    const Values xy{a.value("self"), a.value("other")};
    TENON_USER_CHECK(a.type(xy[0]).rank() == left && a.type(xy[1]).rank() == right,
                     "{}: Expected {}-D and {}-D arguments, but got {}-D and {}-D", name, left, right, a.type(xy[0]).rank(),
                     a.type(xy[1]).rank());
    return a.call("matmul", same_dtype(a, xy));
  };
}

/// np.vdot flattens both.
Values vdot(ForeignArguments& a) {
  Values xy = same_dtype(a, {a.value("self"), a.value("other")});
  for (ir::ValueId& v : xy) v = reshape_to(a.builder(), v, {Dim(-1)});
  return a.call("matmul", xy);
}

/// np.vecdot: products of the vectors along the last dimension, the other dimensions broadcast.
Values numpy_vecdot(ForeignArguments& a) {
  a.refuse({"axes"});
  if (a.integer("axis", Dim(-1)) != Dim(-1)) throw Exception(Code::unsupported, "vecdot along another axis than the last");
  Values xy = same_dtype(a, {a.value("self"), a.value("other")});
  for (const ir::ValueId v : xy) TENON_USER_CHECK(a.type(v).rank() > 0, "vecdot takes no 0-d arrays");
  if (a.type(xy[0]).rank() == 1 && a.type(xy[1]).rank() == 1) return a.call("matmul", xy);
  for (const bool second : {false, true}) {
    ir::Shape shape(a.type(xy[second]).shape);
    shape.insert(shape.end() - (second ? 0 : 1), Dim(1));
    xy[second] = reshape_to(a.builder(), xy[second], shape);
  }
  const ir::ValueId product = a.one("matmul", xy);
  ir::Shape shape(a.type(product).shape);
  shape.resize(shape.size() - 2);
  return {reshape_to(a.builder(), product, shape)};
}

/// np.linalg.outer takes vectors only.
Values linalg_outer(ForeignArguments& a) {
  for (const char* side : {"self", "other"})
    if (a.type(a.value(side)).rank() != 1) throw Exception(Code::unsupported, "the outer product of what are no vectors");
  return outer(a);
}

Op matmul_op() {
  Op op;
  op.name = "matmul";
  op.traits.layout = ResultLayout::row_major;
  op.schema = "(Tensor self, Tensor other) -> Tensor";
  op.aliases =
      torch_names("matmul", "(self, other, *, out=None)", matmul_adapt) + names({"torch.linalg.matmul"}, "(self, other)", matmul_adapt) +
      names({"torch.Tensor.__matmul__", "numpy.ndarray.__matmul__"}, "(self, other)", matmul_adapt) +
      names({"torch.Tensor.__rmatmul__", "numpy.ndarray.__rmatmul__"}, "(self -> other, other -> self)", matmul_adapt) +
      ufunc2({"matmul"}, matmul_adapt) + names({"numpy.dot"}, "(a -> self, b -> other, out=None)", numpy_dot) +
      names({"numpy.ndarray.dot"}, "(self, b -> other, out=None)", numpy_dot) + names({"numpy.inner"}, "(a -> self, b -> other)", inner) +
      torch_names("inner", "(self, other, *, out=None)", inner) + names({"numpy.outer"}, "(a -> self, b -> other, out=None)", outer) +
      torch_names("outer", "(self, vec2 -> other, *, out=None)", outer) + torch_names("ger", "(self, vec2 -> other)", outer) +
      names({"numpy.vdot"}, "(a -> self, b -> other)", vdot) + names({"numpy.linalg.matmul"}, "(x1 -> self, x2 -> other)", matmul_adapt) +
      ufunc2({"vecdot"}, numpy_vecdot) + names({"numpy.linalg.vecdot"}, "(x1 -> self, x2 -> other, *, axis=-1)", numpy_vecdot) +
      names({"numpy.linalg.outer"}, "(x1 -> self, x2 -> other)", linalg_outer) +
      torch_names("dot", "(self, tensor -> other, *, out=None)", vector_product(1, 1, "dot")) +
      torch_names("vdot", "(self, other, *, out=None)", vector_product(1, 1, "vdot")) +
      torch_names("mv", "(self, vec -> other, *, out=None)", vector_product(2, 1, "mv")) + product_names();
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 2, 2);
    const DType t = product_dtype(q);
    return infer::one(q, t, matmul_shape(q));
  };
  op.traits.is_inferred_whole = true;
  op.decompose = [](NodeBuilder& b, const OpQuery& q) -> Values { return {matmul(b, q.operands()[0], q.operands()[1])}; };
  op.samples = matmul_samples;
  return op;
}

// ---- addmm, baddbmm, linear

/// beta * self + alpha * (mat1 @ mat2), computed in the compute type and rounded once.
Values scaled_sum(NodeBuilder& b, const OpQuery& q, std::string_view product_op) {
  const DType result = q.type(1).dtype, t = compute_type(result);
  const double alpha = q.number("alpha", 1), beta = q.number("beta", 1);
  const auto number = [&](double v) { return is_float(t) ? b.literal(v) : b.literal(Dim(static_cast<std::int64_t>(v))); };
  ir::ValueId product = b.one(product_op, {b.cast(q.operands()[1], t), b.cast(q.operands()[2], t)});
  const bool sums_nothing = q.type(1).shape.back() == ir::Dim(0);  // then alpha does not count, not even where it is no number
  if (alpha != 1 && !sums_nothing) product = b.one("mul", {product, number(alpha)});
  if (beta == 0) return {b.cast(product, result)};  // torch: nan and infinity in self do not count then
  ir::ValueId self = b.cast(q.operands()[0], t);
  if (beta != 1) self = b.one("mul", {self, number(beta)});
  return {b.cast(b.one("add", {product, self}), result)};
}

Op sum_and_product(std::string name, std::string product_op, std::size_t batch, std::string_view parameters) {
  Op op;
  op.schema = fmt::format("(Tensor self, Tensor {}, *, Scalar beta=1, Scalar alpha=1) -> Tensor", parameters);
  op.aliases = torch_names(name);
  op.name = std::move(name);
  op.traits.layout = ResultLayout::row_major;
  op.infer = [batch](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 3, 3);
    for (const char* factor : {"alpha", "beta"}) q.number(factor, 1);
    const DType t = product_dtype(q);
    require_rank(q, 1, batch + 2);
    require_rank(q, 2, batch + 2);
    const Shape &a = q.type(1).shape, &b = q.type(2).shape;
    for (std::size_t i = 0; i < batch; ++i) infer::require_equal(q.graph(), a[i], b[i], "batch dimensions");
    infer::require_equal(q.graph(), a[batch + 1], b[batch], "the inner dimensions of the product");
    Shape shape = a;
    shape[batch + 1] = b[batch + 1];
    const Shape both = infer::broadcast(q.graph(), shape, q.type(0).shape);
    TENON_USER_CHECK(both == shape, "self of shape {} does not broadcast to {}", infer::text(q.graph(), q.type(0).shape),
                     infer::text(q.graph(), shape));
    return infer::one(q, t, std::move(shape));
  };
  op.traits.is_inferred_whole = true;
  op.decompose = [product_op](NodeBuilder& b, const OpQuery& q) { return scaled_sum(b, q, product_op); };
  op.samples = [batch] {
    std::vector<Sample> all;
    for (DType t : {DType::f32, DType::f64, DType::f16, DType::i64})
      for (const ir::Attributes& set : {ir::Attributes{}, ir::Attributes{{"alpha", 2.0}, {"beta", 3.0}}, ir::Attributes{{"beta", 0.0}}}) {
        std::vector<std::int64_t> a(batch, 2), b(batch, 2);
        a.insert(a.end(), {3, 4});
        b.insert(b.end(), {4, 5});
        all.push_back({.name = fmt::format("{}_{}", name_of(t), set.size()),
                       .operands = {{.dtype = t, .shape = {5}, .fill = Fill::unit},
                                    {.dtype = t, .shape = a, .fill = Fill::unit},
                                    {.dtype = t, .shape = b, .fill = Fill::unit}},
                       .attributes = set});
      }
    return all;
  };
  return op;
}

Op linear_op() {
  Op op;
  op.name = "linear";
  op.traits.layout = ResultLayout::row_major;
  op.schema = "(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor";
  op.aliases = names({"torch.nn.functional.linear"});
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 2, 3);
    const DType t = product_dtype(q);
    require_rank(q, 1, 2);
    TENON_USER_CHECK(q.type(0).rank() >= 1, "the input must have at least one dimension");
    infer::require_equal(q.graph(), q.type(0).shape.back(), q.type(1).shape[1], "the inner dimensions of the product");
    Shape shape = q.type(0).shape;
    shape.back() = q.type(1).shape[0];
    if (q.operand_count() == 3) {
      TENON_USER_CHECK(q.type(2).rank() <= 1, "the bias must have one dimension, not {}", q.type(2).rank());
      shape = infer::broadcast(q.graph(), shape, q.type(2).shape);
    }
    return infer::one(q, t, std::move(shape));
  };
  op.traits.is_inferred_whole = true;
  op.decompose = [](NodeBuilder& b, const OpQuery& q) -> Values {
    const DType result = q.type(0).dtype, t = compute_type(result);
    const ir::ValueId weight = permute_by(b, b.cast(q.operands()[1], t), {1, 0});
    ir::ValueId y = matmul(b, b.cast(q.operands()[0], t), weight);
    if (q.operand_count() == 3) y = b.one("add", {y, b.cast(q.operands()[2], t)});
    return {b.cast(y, result)};
  };
  op.samples = [] {
    std::vector<Sample> all;
    for (DType t : {DType::f32, DType::f64, DType::f16, DType::bf16})
      for (std::vector<std::int64_t> shape : {std::vector<std::int64_t>{3, 8}, {8}, {2, 3, 8}}) {
        const std::string name = fmt::format("{}_{}", name_of(t), shape.size());
        all.push_back({.name = name,
                       .operands = {{.dtype = t, .shape = shape, .fill = Fill::unit},
                                    {.dtype = t, .shape = {5, 8}, .fill = Fill::unit},
                                    {.dtype = t, .shape = {5}, .fill = Fill::unit}}});
        all.push_back({.name = name + "_no_bias",
                       .operands = {{.dtype = t, .shape = shape, .fill = Fill::unit}, {.dtype = t, .shape = {5, 8}, .fill = Fill::unit}}});
      }
    return all;
  };
  return op;
}

}  // namespace

Family matrix_ops() {
  return {product("mm", 0),
          product("bmm", 1),
          matmul_op(),
          sum_and_product("addmm", "mm", 0, "mat1, Tensor mat2"),
          sum_and_product("baddbmm", "bmm", 1, "batch1, Tensor batch2"),
          linear_op()};
}

}  // namespace tenon::ops
