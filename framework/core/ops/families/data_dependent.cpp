// Ops whose result's size, or whose failing, depends on values.
#include <numeric>

#include "core/ops/families/move.h"
#include "core/ops/reference/scalar_kernels.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::Shape;

/// Calls `visit(indices, value != 0)` for every element in row-major order.
template <class Visit>
void each_truth(const TensorView& x, Visit visit) {
  std::int64_t count = std::accumulate(x.shape.begin(), x.shape.end(), std::int64_t{1}, std::multiplies<>());
  std::vector<std::int64_t> at(x.shape.size(), 0);
  for (; count > 0; --count) {
    const std::int64_t offset = std::inner_product(at.begin(), at.end(), x.strides.begin(), std::int64_t{0});
    std::uint8_t truth = 0;
    reference::gather(x.dtype, x.data, &offset, DType::b8, &truth, 1);
    visit(at, truth != 0);
    for (std::size_t d = at.size(); d-- > 0;) {
      if (++at[d] < x.shape[d]) break;
      at[d] = 0;
    }
  }
}

void nonzero_kernel(KernelCall& call) {
  std::vector<std::int64_t> found;
  std::int64_t rows = 0;
  each_truth(call.inputs[0], [&](const std::vector<std::int64_t>& at, bool truth) {
    if (!truth) return;
    found.insert(found.end(), at.begin(), at.end());
    ++rows;
  });
  TensorView out =
      call.outputs[0].data ? call.outputs[0] : call.allocate(0, {rows, static_cast<std::int64_t>(call.inputs[0].shape.size())});
  TENON_CHECK(out.shape[0] == rows, "nonzero found {} elements; its output has {} rows", rows, out.shape[0]);
  for (std::int64_t r = 0, k = 0; r < rows; ++r)
    for (std::int64_t d = 0; d < out.shape[1]; ++d)
      static_cast<std::int64_t*>(out.data)[r * out.strides[0] + d * out.strides[1]] = found[static_cast<std::size_t>(k++)];
}

/// numpy.nonzero, torch.nonzero(as_tuple=True): one tensor a dimension.
Values as_tuple(ForeignArguments& a, ir::ValueId x) {
  a.container = Container::tuple;
  return a.call("unbind", {a.one("nonzero", {x})}, {{"dim", Dim(1)}});
}

Values masked_select(ForeignArguments& a) {
  ir::ValueId x = a.value("self"), mask = a.value("mask");
  TENON_USER_CHECK(is_bool(a.type(mask).dtype), "masked_select: expected BoolTensor for mask");
  const Shape shape = infer::broadcast(a.graph(), a.type(x).shape, a.type(mask).shape);
  x = reshape_to(a.builder(), expand_to(a.builder(), x, shape), {Dim(-1)});
  mask = reshape_to(a.builder(), expand_to(a.builder(), mask, shape), {Dim(-1)});
  const ir::ValueId places = select_of(a.builder(), a.one("nonzero", {mask}), 1, Dim(0));
  return a.call("index_select", {x, places}, {{"dim", Dim(0)}});
}

Op nonzero_op() {
  Op op;
  op.name = "nonzero";
  op.schema = "(Tensor self) -> Tensor";
  op.aliases = torch_names("nonzero", "(self, *, out=None, as_tuple=False)",
                           [](ForeignArguments& a) {
                             return a.flag("as_tuple") ? as_tuple(a, a.value("self")) : a.call("nonzero", {a.value("self")});
                           }) +
               torch_names("argwhere", "(self)", [](ForeignArguments& a) { return a.call("nonzero", {a.value("self")}); }) +
               names({"numpy.argwhere"}, "(a -> self)", [](ForeignArguments& a) { return a.call("nonzero", {a.value("self")}); }) +
               names({"numpy.nonzero"}, "(a -> self)", [](ForeignArguments& a) { return as_tuple(a, a.value("self")); }) +
               names({"numpy.ndarray.nonzero"}, "(self)", [](ForeignArguments& a) { return as_tuple(a, a.value("self")); }) +
               names({"numpy.flatnonzero"}, "(a -> self)",
                     [](ForeignArguments& a) -> Values {
                       return {select_of(a.builder(), a.one("nonzero", {reshape_to(a.builder(), a.value("self"), {Dim(-1)})}), 1, Dim(0))};
                     }) +
               torch_names("masked_select", "(self, mask, *, out=None)", masked_select);
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 1, 1);
    return infer::one(q, DType::i64, {infer::fresh_symbol(q), Dim(static_cast<std::int64_t>(q.type(0).rank()))});
  };
  op.kernel = nonzero_kernel;
  op.no_grad_reason = "its result is an integer";
  op.samples = [] {
    std::vector<Sample> all;
    for (DType t : {DType::b8, DType::i32, DType::f32, DType::f16})
      all.push_back(
          {.name = std::string(name_of(t)), .operands = {{.dtype = t, .shape = {4, 6}, .fill = is_float(t) ? Fill::special : Fill::unit}}});
    all.push_back({.name = "vector", .operands = {{.dtype = DType::b8, .shape = {50}}}});
    all.push_back({.name = "strided", .operands = {{.dtype = DType::b8, .shape = {4, 6}, .strides = {{1, 4}}}}});
    all.push_back({.name = "nothing", .operands = {{.dtype = DType::b8, .shape = {0, 3}}}});
    all.push_back({.name = "scalar", .operands = {{.dtype = DType::b8, .shape = {}}}});
    return all;
  };
  return op;
}

/// Hands integers on, and fails where one is 0: torch refuses integer division by zero.
Op nonzero_divisor_op() {
  Op op;
  op.name = "nonzero_divisor";
  op.schema = "(Tensor self) -> Tensor";
  op.traits.may_raise = true;
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 1, 1);
    TENON_USER_CHECK(is_int(q.type(0).dtype), "takes integers, not {}", name_of(q.type(0).dtype));
    TENON_USER_CHECK(q.type(0).rank() > 0, "takes a tensor of at least one dimension");
    return infer::one(q, q.type(0).dtype, q.type(0).shape);
  };
  op.loop = [](const OpQuery& q) {
    const std::size_t rank = q.type(0).rank();
    return elementwise(q.type(0).shape, [&](Scalars& s) {
      const auto at = IndexMath(s).loops(rank);
      const Scalar x = s.load(0, q.type(0).dtype, at);
      // A zero reads out of range: the check of indices that depend on data is what fails the call.
      std::vector<Scalar> checked = at;
      checked.back() = s.select(s.eq(x, s.like(x, 0)), s.extent(-1), at.back());
      return s.load(0, q.type(0).dtype, checked);
    });
  };
  op.samples = [] {
    std::vector<Sample> all;
    for (DType t : {DType::u8, DType::i32, DType::i64})
      all.push_back({.name = std::string(name_of(t)), .operands = {{.dtype = t, .shape = {4, 6}, .fill = Fill::nonzero}}});
    return all;
  };
  return op;
}

}  // namespace

Family data_dependent_ops() { return {nonzero_op(), nonzero_divisor_op()}; }

}  // namespace tenon::ops
