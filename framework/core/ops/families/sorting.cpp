// Order along a dimension: sort, topk, kthvalue, median, running extremes, searchsorted. nan counts as larger than all numbers.
#include "core/ops/gradients/gradients.h"
#include "core/ops/lanes/order_kernels.h"
#include "core/ops/notation/formula.h"
#include "core/ops/size_questions.h"

namespace tenon::ops {
namespace {

using ir::Dim;
using ir::Shape;

/// Cases with different elements. Those of `stable` ops have equal elements and nan too: which place is given is then defined.
std::vector<Sample> order_samples(const std::vector<ir::Attributes>& sets, bool stable) {
  std::vector<Sample> all;
  for (const ir::Attributes& set : sets)
    for (DType t : {DType::f32, DType::i64, DType::f16, DType::u8})
      all.push_back({.name = std::string(name_of(t)), .operands = {{.dtype = t, .shape = {3, 5, 4}, .fill = Fill::distinct}}, .attributes = set});
  if (stable) all.push_back({.name = "special", .operands = {{.shape = {4, 5, 9}, .fill = Fill::special}}, .attributes = sets[0]});
  all.push_back({.name = "strided", .operands = {{.shape = {3, 5, 4}, .fill = Fill::distinct, .strides = {{1, 12, 3}}}}, .attributes = sets[0]});
  return all;
}

/// An op that gives elements along a dimension and their places.
Op order_op(std::string name, std::string parameters, std::function<Shape(const OpQuery&)> shape, OrderKernel kernel,
            std::vector<ir::Attributes> samples, bool stable = true) {
  Op op;
  op.name = std::move(name);
  op.schema = fmt::format("(Tensor self, {}) -> (Tensor, Tensor)", parameters);
  op.infer = [shape](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 1, 1);
    TENON_USER_CHECK(!q.literal(0) && !is_complex(q.type(0).dtype), "takes a tensor of numbers that have an order");
    const Shape result = shape(q);
    return infer::Types{ir::Type::tensor(q.type(0).dtype, result, infer::device(q)), ir::Type::tensor(DType::i64, result, infer::device(q))};
  };
  op.kernel = std::move(kernel);
  op.traits.by_lanes = true;
  op.grad = written(gradients::from_places);
  op.samples = [samples = std::move(samples), stable] { return order_samples(samples, stable); };
  return op;
}

Shape same_shape(const OpQuery& q) {
  dim_of(q);
  return q.type(0).shape;
}

Shape chosen_shape(const OpQuery& q) {
  Shape shape = q.type(0).shape;
  const std::int64_t k = q.constant_integer("k");
  const std::size_t dim = dim_of(q);
  const Dim size = shape.empty() ? Dim(1) : shape[dim];
  TENON_USER_CHECK(k >= 0 && infer::range(q.graph(), size).most >= k, "selected index k out of range");
  if (!size.is_constant()) throw Exception(Code::unsupported, "topk of a size that is not known");
  if (!shape.empty()) shape[dim] = Dim(k);
  return shape;
}

Shape one_shape(const OpQuery& q) {
  Shape shape = q.type(0).shape;
  const std::size_t dim = dim_of(q);
  const Dim size = shape.empty() ? Dim(1) : shape[dim];
  TENON_USER_CHECK(infer::taken_positive_or_0(q.graph(), size - Dim(1)), "Expected reduction dim {} to have non-zero size.", dim);
  if (q.find("k")) {
    const Dim k = q.constant_integer("k");
    TENON_USER_CHECK(k.constant() > 0 && infer::taken_positive_or_0(q.graph(), size - k), "selected number k out of range for dimension {}", dim);
  }
  if (!shape.empty()) shape[dim] = Dim(1);
  return shape;
}

// ---- foreign calls

Dim dim_or_last(ForeignArguments& a, ir::ValueId x) { return Dim(infer::wrap_dim(a.integer("dim", Dim(-1)).constant(), a.type(x).rank())); }

Values sorted(ForeignArguments& a, ir::ValueId x, bool descending) {
  return a.call("sort", {x}, {{"descending", descending}, {"dim", dim_or_last(a, x)}});
}

Values sort_adapt(ForeignArguments& a) {
  a.container = Container::tuple;
  return sorted(a, a.value("self"), a.flag("descending"));
}

/// NumPy's sorts without `stable` give equal elements in no order that can be relied on; values alone do not show it.
Values numpy_order(ForeignArguments& a, bool places) {
  a.refuse({"order"});
  const std::string kind = a.text("kind", a.flag("stable", false) ? "stable" : "quicksort");
  if (places && kind != "stable" && kind != "mergesort") throw Exception(Code::unsupported, "argsort without kind='stable'");
  ir::ValueId x = a.tensor(a.value("self"));
  if (a["dim"].is_none()) {
    const ir::ValueId flat = reshape_to(a.builder(), x, {Dim(-1)});
    return {a.call("sort", {flat}, {{"descending", false}, {"dim", Dim(0)}})[places ? 1 : 0]};
  }
  return {sorted(a, x, false)[places ? 1 : 0]};
}

Values topk_adapt(ForeignArguments& a) {
  const ir::ValueId x = a.value("self");
  a.container = Container::tuple;
  return a.call("topk", {x}, {{"dim", dim_or_last(a, x)}, {"k", a.integer("k")}, {"largest", a.flag("largest", true)}, {"sorted", a.flag("sorted", true)}});
}

/// One element of a lane, with or without the dimension.
Values one_of_lane(ForeignArguments& a, std::string_view op, ir::ValueId x, Dim dim, bool keep, ir::Attributes attributes) {
  attributes.push_back({"dim", dim});
  Shape shape = a.type(x).shape;
  Values found = a.call(op, {x}, std::move(attributes));
  if (keep || shape.empty()) return found;
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(dim.constant()));
  for (ir::ValueId& v : found) v = reshape_to(a.builder(), v, shape);
  return found;
}

Values kthvalue_adapt(ForeignArguments& a) {
  const ir::ValueId x = a.value("self");
  a.container = Container::tuple;
  const Dim dim = dim_or_last(a, x);
  const Dim size = a.type(x).rank() ? a.type(x).shape[static_cast<std::size_t>(dim.constant())] : Dim(1);
  TENON_USER_CHECK(a.constant("k") > 0 && infer::range(a.graph(), size).most >= a.constant("k"), "kthvalue(): selected number k out of range for dimension {}", dim.constant());
  return one_of_lane(a, "kthvalue", x, dim, a.flag("keepdim"), {{"k", a.integer("k")}});
}

Adapt median_adapt(bool ignore_nan) {
  return [=](ForeignArguments& a) -> Values {
    const ir::ValueId x = a.value("self");
    if (a.given("dim")) {
      a.container = Container::tuple;
      return one_of_lane(a, "median", x, dim_or_last(a, x), a.flag("keepdim"), {{"ignore_nan", ignore_nan}});
    }
    const ir::ValueId flat = reshape_to(a.builder(), x, {Dim(-1)});
    if (a.type(flat).shape[0] == Dim(0)) throw Exception(Code::unsupported, "the median of nothing");
    return {one_of_lane(a, "median", flat, Dim(0), false, {{"evenly", true}, {"ignore_nan", ignore_nan}})[0]};
  };
}

Adapt running_adapt(bool largest) {
  return [=](ForeignArguments& a) {
    const ir::ValueId x = a.value("self");
    a.container = Container::tuple;
    return a.call("cummax", {x}, {{"dim", dim_or_last(a, x)}, {"largest", largest}});
  };
}

Values search_adapt(ForeignArguments& a) {
  const std::string given_side = a.text("side", ""), side = given_side.empty() ? "left" : given_side;
  TENON_USER_CHECK(side == "left" || side == "right", "torch.searchsorted(): side can only be 'left' or 'right' but got {}", side);
  TENON_USER_CHECK(given_side != "left" || !a.flag("right"), "torch.searchsorted(): side and right can't be set to opposites, got side of {}", side);
  const bool right = a.flag("right") || side == "right";
  Values both{a.value("sorted_sequence"), a.tensor(a.value("self"))};
  TENON_USER_CHECK(a.numpy() || a.type(both[0]).rank() > 0, "torch.searchsorted(): boundaries of 0 dimensions");
  if (a.given("sorter")) {
    if (a.numpy()) throw Exception(Code::unsupported, "searchsorted with a sorter");
    const Shape sequence = a.type(both[0]).shape, order = a.type(a.value("sorter")).shape;
    TENON_USER_CHECK(sequence.size() == order.size(), "a sorter of {} dimensions for boundaries of {}", order.size(), sequence.size());
    for (std::size_t d = 0; d < order.size(); ++d) infer::require_equal(a.graph(), order[d], sequence[d], "the sorter and the boundaries");
    both[0] = a.one("gather", {both[0], a.value("sorter")}, {{"dim", Dim(static_cast<std::int64_t>(a.type(both[0]).rank()) - 1)}});
  }
  a.promote(both, Promotion::common);
  const ir::ValueId found = a.one("searchsorted", both, {{"right", right}, {"nan_last", a.numpy()}});
  return {a.builder().cast(found, a.flag("out_int32") ? DType::i32 : DType::i64)};
}

Op searchsorted_op() {
  Op op;
  op.name = "searchsorted";
  op.schema = "(Tensor sorted_sequence, Tensor self, *, bool right=False, bool nan_last=False) -> Tensor";
  op.aliases = names({"torch.searchsorted"}, "(sorted_sequence, input -> self, *, out_int32=False, right=False, side=None, sorter=None, out=None)", search_adapt) +
               names({"torch.bucketize"}, "(input -> self, boundaries -> sorted_sequence, *, out_int32=False, right=False, out=None)", search_adapt) +
               names({"numpy.searchsorted"}, "(a -> sorted_sequence, v -> self, side='left', sorter=None)", search_adapt);
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 2, 2);
    TENON_USER_CHECK(!q.literal(0) && !q.literal(1), "takes tensors, not numbers");
    infer::shared_dtype(q);
    const Shape &sequence = q.type(0).shape, &values = q.type(1).shape;
    TENON_USER_CHECK(sequence.size() == 1 || sequence.size() == values.size(), "boundaries of {} dimensions for values of {}", sequence.size(), values.size());
    for (std::size_t d = 0; sequence.size() > 1 && d + 1 < sequence.size(); ++d) infer::require_equal(q.graph(), sequence[d], values[d], "the rows of boundaries and values");
    return infer::one(q, DType::i64, values);
  };
  op.kernel = search_kernel();
  op.no_grad_reason = "its result is an integer";
  op.samples = [] {
    std::vector<Sample> all;
    for (bool right : {false, true}) {
      all.push_back({.name = "one", .operands = {{.shape = {1}}, {.shape = {3, 4}}}, .attributes = {{"right", right}}});
      all.push_back({.name = "rows", .operands = {{.dtype = DType::i64, .shape = {3, 1}}, {.dtype = DType::i64, .shape = {3, 5}}}, .attributes = {{"right", right}}});
      all.push_back({.name = "scalar", .operands = {{.shape = {1}}, {.shape = {}}}, .attributes = {{"right", right}}});
    }
    return all;
  };
  return op;
}

Op order_of_rows_op() {
  Op op;
  op.name = "order_of_rows";
  op.schema = "(Tensor self) -> Tensor";
  op.infer = [](const OpQuery& q) -> Result<infer::Types> {
    infer::require_operands(q, 1, 1);
    TENON_USER_CHECK(!q.literal(0) && q.type(0).rank() == 2 && !is_complex(q.type(0).dtype), "takes a matrix of numbers that have an order");
    return infer::one(q, DType::i64, {q.type(0).shape[0]});
  };
  op.kernel = rows_kernel();
  op.no_grad_reason = "its result is an integer";
  op.samples = [] {
    std::vector<Sample> all;
    for (DType t : {DType::f32, DType::i64, DType::f16, DType::u8, DType::b8})
      all.push_back({.name = std::string(name_of(t)), .operands = {{.dtype = t, .shape = {6, 3}, .fill = t == DType::b8 ? Fill::unit : Fill::distinct}}});
    all.push_back({.name = "strided", .operands = {{.shape = {5, 4}, .fill = Fill::distinct, .strides = {{1, 5}}}}});
    return all;
  };
  return op;
}

}  // namespace

Family sorting_ops() {
  Op sort = order_op("sort", "int dim, bool descending=False", same_shape, sort_kernel(),
                     {{{"descending", false}, {"dim", Dim(1)}}, {{"descending", true}, {"dim", Dim(-1)}}});
  sort.aliases = torch_names("sort", "(self, dim=-1, descending=False, *, stable=False, out=None)", sort_adapt) +
                 torch_names("argsort", "(self, dim=-1, descending=False, *, stable=False)",
                             [](ForeignArguments& a) -> Values { return {sorted(a, a.value("self"), a.flag("descending"))[1]}; }) +
                 torch_names("msort", "(self, *, out=None)",
                             [](ForeignArguments& a) -> Values { return {a.call("sort", {a.value("self")}, {{"descending", false}, {"dim", Dim(0)}})[0]}; }) +
                 names({"numpy.sort"}, "(a -> self, axis -> dim = -1, kind=None, order=None, *, stable=None)", [](ForeignArguments& a) { return numpy_order(a, false); }) +
                 names({"numpy.argsort"}, "(a -> self, axis -> dim = -1, kind=None, order=None, *, stable=None)", [](ForeignArguments& a) { return numpy_order(a, true); }) +
                 names({"numpy.ndarray.argsort"}, "(self, axis -> dim = -1, kind=None, order=None, *, stable=None)", [](ForeignArguments& a) { return numpy_order(a, true); });
  Op topk = order_op("topk", "int k, int dim, bool largest=True, bool sorted=True", chosen_shape, topk_kernel(),
                     {{{"dim", Dim(1)}, {"k", Dim(2)}}, {{"dim", Dim(-1)}, {"k", Dim(4)}, {"largest", false}}}, false);
  topk.aliases = torch_names("topk", "(self, k, dim=-1, largest=True, sorted=True, *, out=None)", topk_adapt);
  Op kth = order_op("kthvalue", "int k, int dim", one_shape, kth_kernel(), {{{"dim", Dim(1)}, {"k", Dim(3)}}});
  kth.aliases = torch_names("kthvalue", "(self, k, dim=-1, keepdim=False, *, out=None)", kthvalue_adapt);
  Op median = order_op("median", "int dim, bool ignore_nan=False, bool evenly=False", one_shape, median_kernel(),
                       {{{"dim", Dim(1)}}, {{"dim", Dim(-1)}, {"ignore_nan", true}}});
  median.grad = written(gradients::median);
  median.aliases = torch_names("median", "(self, dim=None, keepdim=False, *, out=None)", median_adapt(false)) +
                   torch_names("nanmedian", "(self, dim=None, keepdim=False, *, out=None)", median_adapt(true));
  Op running = order_op("cummax", "int dim, bool largest=True", same_shape, running_kernel(),
                        {{{"dim", Dim(1)}, {"largest", true}}, {{"dim", Dim(-1)}, {"largest", false}}});
  running.aliases = torch_names("cummax", "(self, dim, *, out=None)", running_adapt(true)) + torch_names("cummin", "(self, dim, *, out=None)", running_adapt(false));
  return {std::move(sort), std::move(topk), std::move(kth), std::move(median), std::move(running), order_of_rows_op(), searchsorted_op()};
}

}  // namespace tenon::ops
