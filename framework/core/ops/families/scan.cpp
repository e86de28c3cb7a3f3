// Running sums and products along a dimension, and differences.
#include "core/ops/families/move.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::Shape;

DType scan_dtype(const OpQuery& q) { return q.dtype("dtype", is_float(q.type(0).dtype) ? q.type(0).dtype : DType::i64); }

/// Hillis and Steele 1986: after step k every element holds the total of the 2^k elements up to it. n log n work, but every step is
/// one pointwise loop, and rounding errors grow with log n only.
ir::ValueId by_doubling(NodeBuilder& b, ir::ValueId x, std::size_t dim, std::int64_t size, std::string_view op, double identity) {
  const std::size_t rank = b.graph().type(x).rank();
  for (std::int64_t shift = 1; shift < size; shift *= 2) {
    std::vector<Dim> before(rank, Dim(0)), after(rank, Dim(0));
    before[dim] = Dim(shift);
    after[dim] = Dim(-shift);
    const ir::ValueId shifted =
        b.one("pad", {x}, {{"after", after}, {"before", before}, {"mode", std::string("constant")}, {"value", identity}});
    x = b.one(op, {x, shifted});
  }
  return x;
}

/// For sizes that are not known: element i reduces all elements up to i.
ir::ValueId by_mask(NodeBuilder& b, ir::ValueId x, std::size_t dim, std::string_view reduction, double identity) {
  const ir::Type type = b.graph().type(x);
  const Dim size = type.shape[dim];
  // Dimension `dim` of the result stands before the reduced one.
  Shape wide = type.shape, one_more = type.shape;
  wide.insert(wide.begin() + static_cast<std::ptrdiff_t>(dim), size);
  one_more.insert(one_more.begin() + static_cast<std::ptrdiff_t>(dim), Dim(1));
  const ir::ValueId count = b.one("arange", {}, {{"dtype", DType::i64}, {"end", size}, {"start", Dim(0)}, {"step", Dim(1)}});
  Shape rows(wide.size(), Dim(1)), columns(wide.size(), Dim(1));
  rows[dim] = columns[dim + 1] = size;
  const ir::ValueId counts = b.one("le", {reshape_to(b, count, columns), reshape_to(b, count, rows)});
  const ir::ValueId neutral =
      b.literal(is_float(type.dtype) ? ir::Literal(identity) : ir::Literal(Dim(static_cast<std::int64_t>(identity))));
  const ir::ValueId kept = b.one("where", {counts, expand_to(b, reshape_to(b, x, one_more), wide), neutral});
  return b.one(reduction, {kept},
               {{"dim", std::vector<Dim>{Dim(static_cast<std::int64_t>(dim + 1))}}, {"dtype", type.dtype}, {"keepdim", false}});
}

Op scan(std::string name, std::string pointwise, std::string reduction, double identity) {
  Op op;
  op.schema = "(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor";
  const Adapt adapt = [name](ForeignArguments& a) {
    a.refuse({"out"});
    ir::ValueId x = a.tensor(a.value("self"));
    const DType given = a.type(x).dtype;
    if (a.numpy() && given == DType::u8 && !a.given("dtype"))
      throw Exception(Code::unsupported, "NumPy accumulates uint8 in uint64, which Tenon lacks; give a dtype");
    if (!a.given("dim")) x = reshape_to(a.builder(), x, {Dim(-1)});
    const std::int64_t dim = a.given("dim") ? a.dim("dim", a.type(x).rank()) : 0;
    return a.call(name, {x}, {{"dim", Dim(dim)}, {"dtype", a.dtype("dtype").value_or(is_float(given) ? given : DType::i64)}});
  };
  op.aliases = torch_names(name, "(self, dim, *, dtype=None, out=None)", adapt) +
               names({"numpy." + name}, "(a -> self, axis -> dim = None, dtype=None, out=None)", adapt) +
               names({"numpy.ndarray." + name}, "(self, axis -> dim = None, dtype=None, out=None)", adapt);
  op.name = std::move(name);
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 1, 1);
    dim_of(q);
    return infer::one(q, scan_dtype(q), q.type(0).shape);
  };
  op.decompose = [=](NodeBuilder& b, const OpQuery& q) -> Values {
    const DType result = scan_dtype(q);
    const ir::ValueId x = b.cast(q.operands()[0], compute_type(result));
    if (q.type(0).rank() == 0) return {b.cast(x, result)};
    const Dim size = q.type(0).shape[dim_of(q)];
    const ir::ValueId y = size.is_constant() ? by_doubling(b, x, dim_of(q), size.constant(), pointwise, identity)
                                             : by_mask(b, x, dim_of(q), reduction, identity);
    return {b.cast(y, result)};
  };
  op.samples = [] {
    std::vector<Sample> all;
    for (DType t : {DType::f32, DType::f64, DType::f16, DType::i32, DType::b8})
      for (std::int64_t dim : {0, -1})
        all.push_back({.name = fmt::format("{}_{}", name_of(t), dim),
                       .operands = {{.dtype = t, .shape = {7, 5}, .fill = Fill::unit}},
                       .attributes = {{"dim", Dim(dim)}},
                       .tolerance = 4});
    all.push_back({.name = "long", .operands = {{.shape = {300}, .fill = Fill::unit}}, .attributes = {{"dim", Dim(0)}}, .tolerance = 8});
    all.push_back({.name = "scalar", .operands = {{.shape = {}}}, .attributes = {{"dim", Dim(0)}}});
    all.push_back({.name = "nothing", .operands = {{.shape = {0, 2}}}, .attributes = {{"dim", Dim(0)}}});
    return all;
  };
  return op;
}

/// x[1:] - x[:-1] along a dimension, n times; of bools: not equal.
Values difference(ForeignArguments& a) {
  a.refuse({"prepend", "append", "out"});
  ir::ValueId x = a.value("self");
  const auto dim = static_cast<std::size_t>(a.dim("dim", a.type(x).rank()));
  for (std::int64_t n = a.integer("n", Dim(1)).constant(); n > 0; --n) {
    const ir::ValueId later = slice_of(a.builder(), x, dim, {Dim(1), {}, {}}), earlier = slice_of(a.builder(), x, dim, {{}, Dim(-1), {}});
    x = a.one(is_bool(a.type(x).dtype) ? "logical_xor" : "sub", {later, earlier});
  }
  return {x};
}

}  // namespace

Family scan_ops() {
  Family ops = {scan("cumsum", "add", "sum", 0), scan("cumprod", "mul", "prod", 1)};
  ops[0].aliases = ops[0].aliases + torch_names("diff", "(self, n=1, dim=-1, prepend=None, append=None, *, out=None)", difference) +
                   names({"numpy.diff"}, "(a -> self, n=1, axis -> dim = -1, prepend=None, append=None)", difference);
  return ops;
}

}  // namespace tenon::ops
