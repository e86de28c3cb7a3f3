#include <algorithm>

#include "core/ops/gradients/gradient.h"
#include "core/ops/gradients/gradients.h"
#include "core/ops/notation/move.h"

namespace tenon::ops::gradients {
namespace {

using ir::Dim;
using ir::ValueId;

ir::Attributes attributes_of(GradBuilder& g) { return g.query().attributes(); }

}  // namespace

GradBuilder::Values reshape(GradBuilder& g) { return {g.reshape(g.gradient(), g.type(g.operand()).shape)}; }

GradBuilder::Values slice(GradBuilder& g) { return {g.one("slice_scatter", {g.zeros(g.operand()), g.gradient()}, attributes_of(g))}; }

GradBuilder::Values select(GradBuilder& g) { return {g.one("select_scatter", {g.zeros(g.operand()), g.gradient()}, attributes_of(g))}; }

GradBuilder::Values flip(GradBuilder& g) { return {g.one("flip", {g.gradient()}, attributes_of(g))}; }

/// What constants were put around the operand is cut off, and what was cut off gets nothing. The other modes hand on what was repeated.
GradBuilder::Values pad(GradBuilder& g) {
  const OpQuery& q = g.query();
  if (q.text("mode", "constant") != "constant") return {*loop_gradients(g.nodes(), g.nodes().graph().value(g.result()).node, g.gradient())[0]};
  const auto opposite = [](std::vector<Dim> sizes) {
    for (Dim& d : sizes) d = Dim(0) - d;
    return sizes;
  };
  return {g.one("pad", {g.gradient()}, {{"after", opposite(q.integers("after"))}, {"before", opposite(q.integers("before"))}, {"mode", std::string("constant")}, {"value", 0.0}})};
}

GradBuilder::Values cat(GradBuilder& g) {
  const auto dim = static_cast<std::size_t>(infer::wrap_dim(g.query().constant_integer("dim", 0), g.type(g.operand()).rank()));
  GradBuilder::Values parts;
  Dim start(0);
  for (std::size_t k = 0; k < g.operand_count(); ++k) {
    const Dim end = start + g.shape(g.operand(k))[dim];
    parts.push_back(g.one("slice", {g.gradient()}, {{"dim", Dim(static_cast<std::int64_t>(dim))}, {"end", end}, {"start", start}, {"step", Dim(1)}}));
    start = end;
  }
  return parts;
}

GradBuilder::Values stack(GradBuilder& g) { return g.nodes().call("unbind", {g.gradient()}, {{"dim", Dim(g.query().constant_integer("dim", 0))}}); }

GradBuilder::Values unbind(GradBuilder& g) {
  const std::int64_t dim = infer::wrap_dim(g.query().constant_integer("dim", 0), g.type(g.operand()).rank());
  GradBuilder::Values parts;
  for (std::size_t k = 0; k < g.result_count(); ++k) parts.push_back(g.gradient(k));
  if (parts.empty()) return {g.zeros(g.operand())};
  return {g.one("stack", parts, {{"dim", Dim(dim)}})};
}

/// Windows that overlap are cut into parts of a step: the parts that lie side by side are put in a row, and the rows on top of each other.
GradBuilder::Values unfold(GradBuilder& g) {
  constexpr std::int64_t kMostRows = 16;
  const OpQuery& q = g.query();
  const std::int64_t step = q.constant_integer("step");
  const Dim size = q.integer("size");
  if (!size.is_constant() || size.constant() > kMostRows * step) return {*loop_gradients(g.nodes(), g.nodes().graph().value(g.result()).node, g.gradient())[0]};
  const ir::Shape whole = g.shape(g.operand());
  const auto dim = static_cast<std::size_t>(infer::wrap_dim(q.constant_integer("dim"), whole.size()));
  const auto padded = [&](ValueId v, std::size_t d, Dim before, Dim after) {
    const std::size_t rank = g.shape(v).size();
    std::vector<Dim> front(rank, Dim(0)), back(rank, Dim(0));
    front[d] = std::move(before), back[d] = std::move(after);
    return g.one("pad", {v}, {{"after", back}, {"before", front}, {"mode", std::string("constant")}, {"value", 0.0}});
  };
  std::vector<Dim> order;  // the window next to its place
  for (std::size_t d = 0; d < whole.size(); ++d) {
    order.emplace_back(static_cast<std::int64_t>(d));
    if (d == dim) order.emplace_back(static_cast<std::int64_t>(whole.size()));
  }
  const ValueId windows = g.one("permute", {g.gradient()}, {{"dims", order}});
  const Dim count = g.shape(windows)[dim], row = count * Dim(step);
  ir::Shape in_a_row = whole;
  in_a_row[dim] = row;
  std::optional<ValueId> sum;
  for (std::int64_t start = 0; start < size.constant(); start += step) {
    const std::int64_t end = std::min(start + step, size.constant());
    ValueId part = g.one("slice", {windows}, {{"dim", Dim(static_cast<std::int64_t>(dim) + 1)}, {"end", Dim(end)}, {"start", Dim(start)}, {"step", Dim(1)}});
    if (end - start < step) part = padded(part, dim + 1, Dim(0), Dim(step - (end - start)));
    part = padded(g.reshape(part, in_a_row), dim, Dim(start), whole[dim] - Dim(start) - row);
    sum = sum ? g.one("add", {*sum, part}) : part;
  }
  return {sum ? *sum : g.zeros(g.operand())};
}

GradBuilder::Values slice_scatter(GradBuilder& g) {
  return {g.one("slice_scatter", {g.gradient(), g.zeros(g.operand(1))}, attributes_of(g)), g.one("slice", {g.gradient()}, attributes_of(g))};
}

GradBuilder::Values select_scatter(GradBuilder& g) {
  return {g.one("select_scatter", {g.gradient(), g.zeros(g.operand(1))}, attributes_of(g)), g.one("select", {g.gradient()}, attributes_of(g))};
}

}  // namespace tenon::ops::gradients
