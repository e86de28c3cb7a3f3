// Tensors put together: cat, stack and NumPy's variants.
#include <algorithm>

#include "core/ops/gradients/gradients.h"
#include "core/ops/notation/move.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::Shape;

std::size_t joined_dim(const OpQuery& q) {
  TENON_USER_CHECK(q.type(0).rank() > 0, "zero-dimensional tensor (at position 0) cannot be concatenated");
  return static_cast<std::size_t>(infer::wrap_dim(q.constant_integer("dim", 0), q.type(0).rank()));
}

Result<infer::Types> infer_cat(const OpQuery& q) {
  infer::require_operands(q, 1, 1u << 16);
  const DType dtype = infer::shared_dtype(q);
  const std::size_t dim = joined_dim(q);
  Shape shape = q.type(0).shape;
  for (std::size_t i = 1; i < q.operand_count(); ++i) {
    const Shape& other = q.type(i).shape;
    TENON_USER_CHECK(other.size() == shape.size(), "tensors must have the same number of dimensions: got {} and {}", shape.size(),
                     other.size());
    for (std::size_t d = 0; d < shape.size(); ++d)
      if (d != dim) infer::require_equal(q.graph(), shape[d], other[d], fmt::format("sizes of dimension {}", d));
    shape[dim] = shape[dim] + other[dim];
  }
  return infer::one(q, dtype, std::move(shape));
}

/// A chain of masked loads: each operand covers its own range of the joined dimension.
LoopBody cat_loop(const OpQuery& q) {
  const std::size_t dim = joined_dim(q);
  Shape shape = infer_cat(q).value()[0].shape;
  const std::size_t rank = shape.size();
  return elementwise(std::move(shape), [&](Scalars& s) {
    const auto at = IndexMath(s).loops(rank);
    std::vector<Dim> starts{Dim(0)};
    for (std::size_t i = 0; i < q.operand_count(); ++i) starts.push_back(starts.back() + q.type(i).shape[dim]);
    Scalar element = s.constant(compute_type(q.type(0).dtype), std::int64_t{0});
    for (std::size_t i = q.operand_count(); i-- > 0;) {
      const Scalar inside = s.logical_and(s.ge(at[dim], s.extent(starts[i])), s.lt(at[dim], s.extent(starts[i + 1])));
      auto index = at;
      index[dim] = starts[i] == Dim(0) ? at[dim] : s.sub(at[dim], s.extent(starts[i]));
      element = q.operand_count() == 1 ? s.load(i, q.type(i).dtype, index) : s.load_if(inside, i, q.type(i).dtype, index, element);
    }
    return element;
  });
}

std::vector<Sample> join_samples() {
  std::vector<Sample> all;
  for (DType t : {DType::f32, DType::i64, DType::b8, DType::f16})
    all.push_back({.name = std::string(name_of(t)),
                   .operands = {{.dtype = t, .shape = {2, 3}}, {.dtype = t, .shape = {2, 3}}, {.dtype = t, .shape = {2, 3}}},
                   .attributes = {{"dim", Dim(0)}}});
  all.push_back(
      {.name = "last", .operands = {{.shape = {2, 3}}, {.shape = {2, 3}, .strides = {{1, 2}}}}, .attributes = {{"dim", Dim(-1)}}});
  all.push_back({.name = "one", .operands = {{.shape = {2, 3}}}, .attributes = {{"dim", Dim(1)}}});
  return all;
}

// ---- foreign calls

Values joined(ForeignArguments& a, std::string_view op, Values tensors, std::int64_t dim) {
  TENON_USER_CHECK(!tensors.empty(), "{}: expected a non-empty list of tensors", op);
  if (const auto dtype = a.dtype("dtype"))
    for (ir::ValueId& v : tensors) v = a.builder().cast(v, *dtype);
  a.promote(tensors, Promotion::common);
  return a.call(op, std::move(tensors), {{"dim", Dim(dim)}});
}

Values as_tensors(ForeignArguments& a) {
  Values all = a.values("tensors");
  for (ir::ValueId& v : all) v = a.tensor(v);
  return all;
}

/// torch leaves empty one-dimensional tensors out (a rule from before 0-size dimensions).
Values cat(ForeignArguments& a) {
  a.refuse({"out"});
  Values all = as_tensors(a);
  if (a.numpy() && !a.given("dim") && a["dim"].is_none()) {
    for (ir::ValueId& v : all) v = reshape_to(a.builder(), v, {Dim(-1)});
    return joined(a, "cat", all, 0);
  }
  TENON_USER_CHECK(!all.empty(), "expected a non-empty list of tensors");
  const auto is_nothing = [&](ir::ValueId v) { return a.type(v).rank() == 1 && a.type(v).shape[0] == Dim(0); };
  if (!a.numpy() && !std::ranges::all_of(all, is_nothing)) {
    a.promote(all, Promotion::common);  // their dtypes count all the same
    std::erase_if(all, is_nothing);
  }
  return joined(a, "cat", all, a.dim("dim", a.type(all[0]).rank()));
}

Values stack(ForeignArguments& a) {
  a.refuse({"out"});
  Values all = as_tensors(a);
  TENON_USER_CHECK(!all.empty(), "stack expects a non-empty list of tensors");
  return joined(a, "stack", all, a.dim("dim", a.type(all[0]).rank() + 1));
}

/// The tensors with at least `rank` dimensions, new ones in front.
Values at_least(ForeignArguments& a, std::size_t rank) {
  Values all = as_tensors(a);
  for (ir::ValueId& v : all) {
    Shape shape = a.type(v).shape;
    while (shape.size() < rank) shape.insert(shape.begin(), Dim(1));
    v = reshape_to(a.builder(), v, shape);
  }
  return all;
}

Values hstack(ForeignArguments& a) {
  Values all = at_least(a, 1);
  TENON_USER_CHECK(!all.empty(), "hstack expects a non-empty list of tensors");
  return joined(a, "cat", all, a.type(all[0]).rank() == 1 ? 0 : 1);
}

/// torch.dstack: depth is a third dimension.
Values dstack(ForeignArguments& a) {
  Values all = as_tensors(a);
  for (ir::ValueId& v : all) {
    Shape shape = a.type(v).shape;
    while (shape.size() < 2) shape.insert(shape.begin(), Dim(1));
    if (shape.size() == 2) shape.emplace_back(1);
    v = reshape_to(a.builder(), v, shape);
  }
  return joined(a, "cat", all, 2);
}

Values vstack(ForeignArguments& a) { return joined(a, "cat", at_least(a, 2), 0); }

/// One-dimensional tensors are columns.
Values column_stack(ForeignArguments& a) {
  Values all = as_tensors(a);
  for (ir::ValueId& v : all)
    if (a.type(v).rank() < 2) v = reshape_to(a.builder(), v, {Dim(-1), Dim(1)});
  return joined(a, "cat", all, 1);
}

Values append(ForeignArguments& a) {
  Values both{a.tensor(a.value("self")), a.tensor(a.value("values"))};
  if (!a.given("dim"))
    for (ir::ValueId& v : both) v = reshape_to(a.builder(), v, {Dim(-1)});
  return joined(a, "cat", both, a.given("dim") ? a.dim("dim", a.type(both[0]).rank()) : 0);
}

Op cat_op() {
  Op op;
  op.name = "cat";
  op.schema = "(Tensor[] tensors, int dim=0) -> Tensor";
  op.promotion = Promotion::common;
  op.aliases = composed_names() + names({"torch.cat", "torch.concat", "torch.concatenate"}, "(tensors, dim=0, *, out=None)", cat) +
               names({"numpy.concatenate", "numpy.concat"},
                     "(arrays -> tensors, axis -> dim = 0, out=None, *, dtype=None, casting='same_kind')", cat) +
               names({"torch.hstack"}, "(tensors, *, out=None)", hstack) +
               names({"torch.vstack", "torch.row_stack"}, "(tensors, *, out=None)", vstack) +
               names({"torch.dstack"}, "(tensors, *, out=None)", dstack) + names({"torch.column_stack"}, "(tensors, *, out=None)", column_stack) +
               names({"numpy.hstack"}, "(tup -> tensors, *, dtype=None, casting='same_kind')", hstack) +
               names({"numpy.vstack"}, "(tup -> tensors, *, dtype=None, casting='same_kind')", vstack) +
               names({"numpy.column_stack"}, "(tup -> tensors)", column_stack) +
               names({"numpy.append"}, "(arr -> self, values, axis -> dim = None)", append);
  op.infer = infer_cat;
  op.loop = cat_loop;
  op.grad = written(gradients::cat);
  op.samples = [] {
    auto all = join_samples();
    all.push_back({.name = "different_sizes",
                   .operands = {{.shape = {2, 3}}, {.shape = {2, 0}}, {.shape = {2, 4}}},
                   .attributes = {{"dim", Dim(1)}}});
    return all;
  };
  return op;
}

Op stack_op() {
  Op op;
  op.name = "stack";
  op.traits.layout = ResultLayout::row_major_of_row_major;
  op.schema = "(Tensor[] tensors, int dim=0) -> Tensor";
  op.promotion = Promotion::common;
  op.aliases = names({"torch.stack"}, "(tensors, dim=0, *, out=None)", stack) +
               names({"numpy.stack"}, "(arrays -> tensors, axis -> dim = 0, out=None, *, dtype=None, casting='same_kind')", stack);
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 1, 1u << 16);
    const DType dtype = infer::shared_dtype(q);
    Shape shape = q.type(0).shape;
    for (std::size_t i = 1; i < q.operand_count(); ++i) {
      TENON_USER_CHECK(q.type(i).rank() == shape.size(), "stack expects each tensor to be equal size, but got ranks {} and {}",
                       shape.size(), q.type(i).rank());
      for (std::size_t d = 0; d < shape.size(); ++d)
        infer::require_equal(q.graph(), shape[d], q.type(i).shape[d], fmt::format("sizes of dimension {}", d));
    }
    const std::int64_t dim = infer::wrap_dim(q.constant_integer("dim", 0), shape.size() + 1);
    shape.insert(shape.begin() + dim, Dim(static_cast<std::int64_t>(q.operand_count())));
    return infer::one(q, dtype, std::move(shape));
  };
  op.traits.is_inferred_whole = true;
  op.decompose = [](NodeBuilder& b, const OpQuery& q) -> Values {
    const std::int64_t dim = infer::wrap_dim(q.constant_integer("dim", 0), q.type(0).rank() + 1);
    Values parts;
    for (ir::ValueId v : q.operands()) {
      Shape shape = b.graph().type(v).shape;
      shape.insert(shape.begin() + dim, Dim(1));
      parts.push_back(b.one("reshape", {v}, {{"shape", shape}}));
    }
    return {b.one("cat", parts, {{"dim", Dim(dim)}})};
  };
  op.grad = written(gradients::stack);
  op.samples = [] {
    auto all = join_samples();
    all.push_back({.name = "scalars", .operands = {{.shape = {}}, {.shape = {}}}, .attributes = {{"dim", Dim(0)}}});
    return all;
  };
  return op;
}

}  // namespace

Family joining_ops() { return {cat_op(), stack_op()}; }

}  // namespace tenon::ops
