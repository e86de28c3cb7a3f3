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

GradBuilder::Values slice_scatter(GradBuilder& g) {
  return {g.one("slice_scatter", {g.gradient(), g.zeros(g.operand(1))}, attributes_of(g)), g.one("slice", {g.gradient()}, attributes_of(g))};
}

GradBuilder::Values select_scatter(GradBuilder& g) {
  return {g.one("select_scatter", {g.gradient(), g.zeros(g.operand(1))}, attributes_of(g)), g.one("select", {g.gradient()}, attributes_of(g))};
}

}  // namespace tenon::ops::gradients
