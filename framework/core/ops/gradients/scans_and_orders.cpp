#include <cmath>

#include "core/ops/gradients/gradients.h"
#include "core/ops/notation/family.h"

namespace tenon::ops::gradients {
namespace {

using ir::Dim;
using ir::Shape;
using ir::ValueId;

/// A scan from the end of a dimension.
ValueId scanned_back(GradBuilder& g, std::string_view op, ValueId v, std::size_t dim) {
  const std::vector<Dim> dims{Dim(static_cast<std::int64_t>(dim))};
  const ValueId back = g.one("flip", {v}, {{"dims", dims}});
  return g.one("flip", {g.one(op, {back}, {{"dim", dims[0]}, {"dtype", g.type(v).dtype}})}, {{"dims", dims}});
}

}  // namespace

ValueId added_at(GradBuilder& g, ValueId like, ValueId places, ValueId values, std::size_t dim) {
  return g.one("scatter", {g.zeros(like), places, values}, {{"dim", Dim(static_cast<std::int64_t>(dim))}, {"reduce", std::string("sum")}});
}

GradBuilder::Values cumsum(GradBuilder& g) {
  if (g.type(g.operand()).rank() == 0) return {g.gradient()};
  return {g.nodes().cast(scanned_back(g, "cumsum", g.gradient(), dim_of(g.query())), g.type(g.operand()).dtype)};
}

GradBuilder::Values cumprod(GradBuilder& g) {
  if (g.type(g.operand()).rank() == 0) return {g.gradient()};
  const ValueId x = g.nodes().cast(g.operand(), g.type(g.result()).dtype);
  const ValueId made = g.one("cumprod_gradient", {x, g.gradient()}, {{"dim", Dim(static_cast<std::int64_t>(dim_of(g.query())))}});
  return {g.nodes().cast(made, g.type(g.operand()).dtype)};
}

/// That gradient is, for each element, the sum over the later results of the product of all others, times the gradient of the result: here by a table of
/// n × n, since quotients have other slopes where an element is 0.
GradBuilder::Values cumprod_gradient(GradBuilder& g) {
  const ValueId elements = g.operand(0), of_results = g.operand(1);
  const std::size_t dim = dim_of(g.query());
  const DType t = g.type(elements).dtype;
  const Shape shape = g.type(elements).shape;
  Shape row = shape, column = shape, table = shape;  // a dimension before `dim` says which element is left out
  row.insert(row.begin() + static_cast<std::ptrdiff_t>(dim), Dim(1));
  column.insert(column.begin() + static_cast<std::ptrdiff_t>(dim) + 1, Dim(1));
  table.insert(table.begin() + static_cast<std::ptrdiff_t>(dim), shape[dim]);
  const Dim along(static_cast<std::int64_t>(dim + 1)), across(static_cast<std::int64_t>(dim));
  const ValueId left_out = g.positions(table, dim), place = g.positions(table, dim + 1);
  const ValueId is_left_out = g.one("eq", {left_out, place}), is_later = g.one("ge", {place, left_out});
  const ValueId others = g.one("where", {is_left_out, g.number(1), g.reshape(elements, row)});
  const ValueId products = g.one("cumprod", {others}, {{"dim", along}, {"dtype", t}});
  const ValueId given = g.reshape(g.gradient(), column);
  const ValueId to_gradients = g.one("where", {is_later, g.one("mul", {products, given}), g.number(0)});
  const ValueId to_products = g.one("where", {is_later, g.one("mul", {g.reshape(of_results, row), given}), g.number(0)});
  const ValueId to_others = g.one("cumprod_gradient", {others, to_products}, {{"dim", along}});
  const ValueId to_elements = g.one("where", {is_left_out, g.number(0), to_others});
  return {g.reshape(g.sum(to_elements, {across}), shape), g.reshape(g.sum(to_gradients, {across}), shape)};
}

/// exp(x_i) * sum over j >= i of g_j exp(-y_j), positive and negative parts apart and in logarithms, so that nothing overflows.
GradBuilder::Values logcumsumexp(GradBuilder& g) {
  if (g.type(g.operand()).rank() == 0) return {g.gradient()};
  const std::size_t dim = dim_of(g.query());
  const DType t = g.type(g.result()).dtype;
  const ValueId x = g.nodes().cast(g.operand(), t), y = g.result();
  const auto part = [&](ValueId weights) {
    const ValueId positive = g.one("gt", {weights, g.number(0)});
    const ValueId log = g.one("sub", {g.one("log", {g.one("where", {positive, weights, g.number(1)})}), y});
    const ValueId total = scanned_back(g, "logcumsumexp", g.one("where", {positive, log, g.number(-INFINITY)}), dim);
    return g.one("exp", {g.one("add", {total, x})});
  };
  const ValueId both = g.one("sub", {part(g.gradient()), part(g.one("neg", {g.gradient()}))});
  return {g.nodes().cast(both, g.type(g.operand()).dtype)};
}

GradBuilder::Values from_places(GradBuilder& g) {
  if (g.type(g.operand()).rank() == 0) return {g.gradient()};
  return {added_at(g, g.operand(), g.result(1), g.gradient(), dim_of(g.query()))};
}

GradBuilder::Values median(GradBuilder& g) {
  if (!g.query().flag("evenly")) return from_places(g);
  return {evenly(g, g.one("eq", {g.operand(), g.result()}), g.result(), g.gradient(), {Dim(static_cast<std::int64_t>(dim_of(g.query())))})};
}

}  // namespace tenon::ops::gradients
