// Reading elements at places that other tensors give. An index out of range fails the call.
#include <algorithm>

#include "core/ops/gradients/gradients.h"
#include "core/ops/notation/index_rules.h"
#include "core/ops/notation/move.h"
#include "core/ops/size_questions.h"

namespace tenon::ops {

using ir::Dim;
using ir::Shape;

void require_index_dtype(const OpQuery& q, std::size_t operand) {
  TENON_USER_CHECK(is_int(q.type(operand).dtype), "indices must be integers, not {}", name_of(q.type(operand).dtype));
  if (q.type(0).rank() == 0) throw Exception(Code::unsupported, "indices into a tensor without dimensions");
}

namespace {

/// An index that is a number is looked at here; those that are data, when they are read.
void require_in_range(const OpQuery& q, std::size_t operand, const Dim& size, bool from_end) {
  const ir::Literal* l = q.literal(operand);
  if (!l) return;
  const Dim &index = std::get<Dim>(*l), least = from_end ? index + size : index;
  TENON_USER_CHECK(infer::taken_positive_or_0(q.graph(), least) && infer::taken_positive_or_0(q.graph(), size - index - Dim(1)),
                   "index {} is out of bounds for a dimension of size {}", infer::text(q.graph(), index), infer::text(q.graph(), size));
}

}  // namespace

AdvancedIndex::AdvancedIndex(const OpQuery& q, std::size_t first_index) {
  for (const Dim& d : q.integers("dims")) dims.push_back(static_cast<std::size_t>(infer::wrap_dim(d.constant(), q.type(0).rank())));
  TENON_USER_CHECK(!dims.empty() && dims.size() == q.operand_count() - first_index, "{} index tensors for {} dimensions",
                   q.operand_count() - first_index, dims.size());
  TENON_USER_CHECK(std::ranges::adjacent_find(dims, std::greater_equal<>()) == dims.end(), "'dims' must be increasing");
  for (std::size_t i = first_index; i < q.operand_count(); ++i) {
    require_index_dtype(q, i);
    require_in_range(q, i, q.type(0).shape[dims[i - first_index]], true);
  }
  broadcast = infer::broadcast_operands(q, first_index);
  const Shape& shape = q.type(0).shape;
  const bool adjacent = dims.back() - dims.front() + 1 == dims.size();
  position = adjacent ? dims.front() : 0;
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (!std::ranges::binary_search(dims, d)) result.push_back(shape[d]);
  result.insert(result.begin() + static_cast<std::ptrdiff_t>(position), broadcast.begin(), broadcast.end());
}

std::vector<Scalar> AdvancedIndex::place(Scalars& s, const OpQuery& q, std::size_t first_index) const {
  IndexMath m(s);
  const auto at = m.loops(result.size());
  std::vector<Scalar> index;
  std::size_t kept = 0, next = 0;
  for (std::size_t d = 0; d < q.type(0).rank(); ++d) {
    if (next < dims.size() && dims[next] == d) {
      const Scalar i = read_index(s, q, first_index + next++, std::span(at).subspan(position, broadcast.size()));
      index.push_back(m.from_end(i, q.type(0).shape[d]));
      continue;
    }
    index.push_back(at[kept < position ? kept : kept + broadcast.size()]);
    ++kept;
  }
  return index;
}

Scalar read_index(Scalars& s, const OpQuery& q, std::size_t operand, std::span<const Scalar> at) {
  if (const ir::Literal* l = q.literal(operand)) return s.extent(std::get<Dim>(*l));
  const Shape& shape = q.type(operand).shape;
  std::vector<Scalar> index;
  for (std::size_t d = 0; d < shape.size(); ++d)
    index.push_back(shape[d] == Dim(1) ? s.constant(DType::i64, std::int64_t{0}) : at[at.size() - shape.size() + d]);
  return s.convert(s.load(operand, q.type(operand).dtype, index), DType::i64);
}

namespace {

Op indexed(std::string name, std::string schema, std::vector<Alias> aliases, std::function<Result<infer::Types>(const OpQuery&)> infer,
           std::function<LoopBody(const OpQuery&)> loop) {
  Op op;
  op.name = std::move(name);
  op.schema = std::move(schema);
  op.aliases = std::move(aliases);
  op.traits.may_raise = true;
  op.infer = std::move(infer);
  op.loop = std::move(loop);
  return op;
}

// ---- index_select

Shape selected_shape(const OpQuery& q) {
  Shape shape = q.type(0).shape;
  TENON_USER_CHECK(q.type(1).rank() <= 1, "index_select(): Index is supposed to be a vector, but it has {} dimensions", q.type(1).rank());
  if (!shape.empty()) shape[dim_of(q)] = ir::product(q.type(1).shape);
  return shape;
}

/// torch checks every index; a kernel checks those of the elements that it gives.
void require_elements(const Shape& shape) {
  if (std::ranges::find(shape, Dim(0)) != shape.end()) throw Exception(Code::unsupported, "indices into a tensor without elements");
}

Values select_adapt(ForeignArguments& a) {
  const ir::ValueId x = a.value("self");
  require_elements(a.type(x).shape);
  const Dim dim(a.dim("dim", a.type(x).rank()));
  const ir::ValueId y = a.one("index_select", {as_vector(a.builder(), x), a.value("index")}, {{"dim", dim}});
  return {a.type(x).rank() ? y : reshape_to(a.builder(), y, {})};
}

Op index_select_op() {
  Op op = indexed(
      "index_select", "(Tensor self, Tensor index, int dim) -> Tensor", torch_names("index_select", "(self, dim, index)", select_adapt),
      [](const OpQuery& q) -> Result<infer::Types> {
        infer::require_operands(q, 2, 2);
        require_index_dtype(q, 1);
        require_in_range(q, 1, q.type(0).shape[dim_of(q)], false);
        return infer::one(q, q.type(0).dtype, selected_shape(q));
      },
      [](const OpQuery& q) {
        Shape shape = selected_shape(q);
        const std::size_t rank = shape.size();
        return elementwise(std::move(shape), [&](Scalars& s) {
          auto at = IndexMath(s).loops(rank);
          if (rank > 0) at[dim_of(q)] = read_index(s, q, 1, std::span(at).subspan(dim_of(q), 1));
          return s.load(0, q.type(0).dtype, at);
        });
      });
  op.traits.layout = ResultLayout::row_major;
  op.samples = [] {
    std::vector<Sample> all;
    for (DType t : {DType::f32, DType::b8, DType::i16, DType::f16})
      for (DType index : {DType::i64, DType::i32})
        all.push_back({.name = fmt::format("{}_{}", name_of(t), name_of(index)),
                       .operands = {{.dtype = t, .shape = {4, 5, 3}}, {.dtype = index, .shape = {6}, .fill = Fill::index, .bound = 5}},
                       .attributes = {{"dim", Dim(1)}}});
    all.push_back(
        {.name = "last",
         .operands = {{.shape = {4, 5}, .strides = {{1, 4}}}, {.dtype = DType::i64, .shape = {3}, .fill = Fill::index, .bound = 5}},
         .attributes = {{"dim", Dim(-1)}}});
    all.push_back({.name = "nothing",
                   .operands = {{.shape = {4, 5}}, {.dtype = DType::i64, .shape = {0}, .fill = Fill::index, .bound = 4}},
                   .attributes = {{"dim", Dim(0)}}});
    return all;
  };
  return op;
}

// ---- gather

Result<infer::Types> infer_gather(const OpQuery& q) {
  infer::require_operands(q, 2, 2);
  require_index_dtype(q, 1);
  TENON_USER_CHECK(q.type(0).rank() == q.type(1).rank(), "Index tensor must have the same number of dimensions as input tensor");
  const std::size_t dim = dim_of(q);
  for (std::size_t d = 0; d < q.type(0).rank(); ++d)
    if (d != dim)
      TENON_USER_CHECK(infer::may_be_positive_or_0(q.graph(), q.type(0).shape[d] - q.type(1).shape[d]),
                       "size of dimension {} of the index ({}) is larger than the input's ({})", d,
                       infer::text(q.graph(), q.type(1).shape[d]), infer::text(q.graph(), q.type(0).shape[d]));
  return infer::one(q, q.type(0).dtype, q.type(1).shape);
}

/// torch.take_along_dim, numpy.take_along_axis: the other dimensions broadcast; negative indices count from the end, but in torch not of all elements.
Values take_along(ForeignArguments& a) {
  ir::ValueId x = a.value("self"), index = a.value("indices");
  TENON_USER_CHECK(a.numpy() || a.type(index).dtype == DType::i64, "torch.take_along_dim(): dtype of indices should be Long but got {}", name_of(a.type(index).dtype));
  if (!a.given("dim")) {
    x = reshape_to(a.builder(), x, {Dim(-1)});
    index = reshape_to(a.builder(), index, {Dim(-1)});
  }
  const std::size_t rank = a.type(x).rank();
  TENON_USER_CHECK(rank > 0, "torch.take_along_dim(): a tensor of 0 dimensions along dimension 0");
  const std::int64_t dim = a.given("dim") ? a.dim("dim", rank) : 0;
  TENON_USER_CHECK(a.type(index).rank() == rank,
                   "torch.take_along_dim(): input and indices should have the same number of dimensions, but got {} dimensions for input, "
                   "and {} dimensions for indices",
                   rank, a.type(index).rank());
  const ir::ValueId size = a.builder().literal(a.type(x).shape[static_cast<std::size_t>(dim)]);
  if (a.numpy() || a.given("dim")) index = a.one("where", {a.one("lt", {index, a.builder().literal(Dim(0))}), a.one("add", {index, size}), index});
  Shape xs = a.type(x).shape, is = a.type(index).shape;
  const Dim kept_x = xs[static_cast<std::size_t>(dim)], kept_i = is[static_cast<std::size_t>(dim)];
  xs[static_cast<std::size_t>(dim)] = is[static_cast<std::size_t>(dim)] = Dim(1);
  Shape both = infer::broadcast(a.graph(), xs, is);
  both[static_cast<std::size_t>(dim)] = kept_x;
  x = expand_to(a.builder(), x, both);
  both[static_cast<std::size_t>(dim)] = kept_i;
  return a.call("gather", {x, expand_to(a.builder(), index, both)}, {{"dim", Dim(dim)}});
}

Op gather_op() {
  Op op = indexed("gather", "(Tensor self, Tensor index, int dim) -> Tensor",
                  torch_names("gather", "(self, dim, index, *, sparse_grad=False, out=None)",
                              [](ForeignArguments& a) {
                                ir::ValueId x = a.value("self"), index = a.value("index");
                                const Shape shape = a.type(index).shape;
                                const Dim dim(a.dim("dim", a.type(x).rank()));
                                if (a.type(x).rank() == 0) x = reshape_to(a.builder(), x, {Dim(1)});
                                if (shape.empty()) index = reshape_to(a.builder(), index, {Dim(1)});
                                return Values{reshape_to(a.builder(), a.one("gather", {x, index}, {{"dim", dim}}), shape)};
                              }) +
                      torch_names("take_along_dim", "(self, indices, dim=None, *, out=None)", take_along) +
                      names({"numpy.take_along_axis"}, "(arr -> self, indices, axis -> dim = -1)", take_along),
                  infer_gather, [](const OpQuery& q) {
                    const std::size_t rank = q.type(1).rank();
                    return elementwise(q.type(1).shape, [&](Scalars& s) {
                      auto at = IndexMath(s).loops(rank);
                      const Scalar i = s.convert(s.load(1, q.type(1).dtype, at), DType::i64);
                      if (rank > 0) at[dim_of(q)] = i;
                      return s.load(0, q.type(0).dtype, at);
                    });
                  });
  op.traits.layout = ResultLayout::row_major;
  op.samples = [] {
    std::vector<Sample> all;
    for (DType t : {DType::f32, DType::i64, DType::b8})
      for (std::int64_t dim : {0, 1, -1})
        all.push_back(
            {.name = fmt::format("{}_{}", name_of(t), dim),
             .operands = {{.dtype = t, .shape = {4, 5, 6}}, {.dtype = DType::i64, .shape = {3, 4, 2}, .fill = Fill::index, .bound = 4}},
             .attributes = {{"dim", Dim(dim)}}});
    return all;
  };
  return op;
}

// ---- index: advanced indexing

/// numpy.take and torch.take (of the flattened tensor).
Values take(ForeignArguments& a) {
  a.refuse({"out"});
  if (const std::string mode = a.text("mode", "raise"); mode != "raise")
    throw Exception(error(Code::unsupported, "take with mode '{}'", mode));
  ir::ValueId x = a.value("self");
  std::int64_t dim = 0;
  if (a.given("dim"))
    dim = a.dim("dim", a.type(x).rank());
  else
    x = reshape_to(a.builder(), x, {Dim(-1)});
  return a.call("index", {x, a.value("index")}, {{"dims", std::vector<Dim>{Dim(dim)}}});
}

Op index_op() {
  Op op = indexed(
      "index", "(Tensor self, Tensor[] indices, int[] dims) -> Tensor",
      torch_names("take", "(self, index)", take) +
          names({"numpy.take"}, "(a -> self, indices -> index, axis -> dim = None, out=None, mode='raise')", take) +
          names({"numpy.ndarray.take"}, "(self, indices -> index, axis -> dim = None, out=None, mode='raise')", take) + subscript_names(),
      [](const OpQuery& q) -> Result<infer::Types> {
        infer::require_operands(q, 2, 64);
        return infer::one(q, q.type(0).dtype, AdvancedIndex(q, 1).result);
      },
      [](const OpQuery& q) {
        const AdvancedIndex where(q, 1);
        return elementwise(where.result, [&](Scalars& s) { return s.load(0, q.type(0).dtype, where.place(s, q, 1)); });
      });
  op.samples = [] {
    const auto index = [](std::vector<std::int64_t> shape, std::int64_t bound) {
      return SampleOperand{.dtype = DType::i64, .shape = std::move(shape), .fill = Fill::signed_index, .bound = bound};
    };
    const auto dims = [](std::vector<Dim> d) { return ir::Attributes{{"dims", std::move(d)}}; };
    const SampleOperand x{.shape = {4, 5, 3}};
    return std::vector<Sample>{
        {.name = "first", .operands = {x, index({6}, 4)}, .attributes = dims({0})},
        {.name = "middle_matrix", .operands = {x, index({2, 3}, 5)}, .attributes = dims({1})},
        {.name = "adjacent", .operands = {x, index({6}, 5), index({2, 1}, 3)}, .attributes = dims({1, 2})},
        {.name = "apart", .operands = {x, index({6}, 4), index({6}, 3)}, .attributes = dims({0, 2})},
        {.name = "all", .operands = {x, index({2}, 4), index({2}, 5), index({}, 3)}, .attributes = dims({0, 1, 2})},
        {.name = "number", .operands = {x, index({6}, 4), {.literal = ir::Literal(Dim(-1))}}, .attributes = dims({0, 2})},
        {.name = "bool", .operands = {{.dtype = DType::b8, .shape = {4, 2}}, index({3}, 4)}, .attributes = dims({0})}};
  };
  return op;
}

// ---- embedding

/// What counts for the gradient alone is handed on.
Values embedded(ForeignArguments& a, const std::optional<Dim>& padding) {
  require_elements(a.type(a.value("weight")).shape);
  ir::Attributes attributes;
  if (padding) attributes.emplace_back("padding_idx", *padding);
  for (const char* option : {"scale_grad_by_freq", "sparse"})
    if (a.flag(option)) attributes.emplace_back(option, true);
  return a.call("embedding", {a.value("weight"), a.value("indices")}, std::move(attributes));
}

Op embedding_op() {
  Op op = indexed(
      "embedding", "(Tensor weight, Tensor indices, *, int? padding_idx=None, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
      names({"torch.embedding"}, "(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False)",
            [](ForeignArguments& a) {
              std::optional<Dim> padding;
              if (const Dim d = a.integer("padding_idx", Dim(-1)); !(d == Dim(-1))) padding = d;
              return embedded(a, padding);
            }) +
          names({"torch.nn.functional.embedding"},
                "(input -> indices, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False)",
                [](ForeignArguments& a) {
                  if (a.given("max_norm")) throw Exception(Code::unsupported, "embedding with max_norm");
                  std::optional<Dim> padding;
                  const Dim rows = a.type(a.value("weight")).shape.at(0);
                  if (a.given("padding_idx")) padding = a.integer("padding_idx");
                  if (padding && padding->is_constant() && padding->constant() < 0) padding = *padding + rows;
                  if (padding && padding->is_constant() && rows.is_constant())
                    TENON_USER_CHECK(padding->constant() >= 0 && padding->constant() < std::max<std::int64_t>(rows.constant(), 1), "Padding_idx must be within num_embeddings");
                  return embedded(a, padding);
                }) +
          embedding_bag_names(),
      [](const OpQuery& q) -> Result<infer::Types> {
        infer::require_operands(q, 2, 2);
        require_index_dtype(q, 1);
        TENON_USER_CHECK(q.type(0).rank() == 2, "'weight' must be 2-D, not {}-D", q.type(0).rank());
        require_in_range(q, 1, q.type(0).shape[0], false);
        Shape shape = q.type(1).shape;
        shape.push_back(q.type(0).shape[1]);
        return infer::one(q, q.type(0).dtype, std::move(shape));
      },
      [](const OpQuery& q) {
        Shape shape = q.type(1).shape;
        shape.push_back(q.type(0).shape[1]);
        const std::size_t rank = shape.size();
        return elementwise(std::move(shape), [&](Scalars& s) {
          const auto at = IndexMath(s).loops(rank);
          const Scalar row = read_index(s, q, 1, std::span(at).first(rank - 1));
          return s.load(0, q.type(0).dtype, std::array{row, at.back()});
        });
      });
  op.traits.layout = ResultLayout::row_major;
  op.grad = written(gradients::embedding);
  op.samples = [] {
    std::vector<Sample> all;
    for (DType t : {DType::f32, DType::f16})
      all.push_back({.name = std::string(name_of(t)),
                     .operands = {{.dtype = t, .shape = {7, 4}}, {.dtype = DType::i64, .shape = {2, 5}, .fill = Fill::index, .bound = 7}}});
    return all;
  };
  return op;
}

}  // namespace

Family indexing_ops() { return {index_select_op(), gather_op(), index_op(), embedding_op()}; }

}  // namespace tenon::ops
