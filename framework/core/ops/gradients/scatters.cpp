
#include "core/ops/gradients/gradient.h"
#include "core/ops/gradients/gradients.h"
#include "core/ops/notation/family.h"
#include "core/ops/notation/move.h"

namespace tenon::ops::gradients {
namespace {

using ir::Dim;
using ir::ValueId;

/// A scatter of one index an element, with what its gradient needs: sums at places, and what lies there.
class Scattered {
 public:
  explicit Scattered(GradBuilder& g) : g_(g), dim_(static_cast<std::int64_t>(dim_of(g.query()))), dtype_(g.type(g.operand()).dtype) {
    src_.push_back(g.operand(2));
    const ir::Shape& used = g.shape(index());
    for (std::size_t d = 0; d < used.size(); ++d)
      if (!(g.shape(src())[d] == used[d])) cut_.push_back(d), src_.push_back(slice_of(g.nodes(), src(), d, {Dim(0), used[d], {}}));
  }

  /// The part of src that has an index.
  ValueId src() const { return src_.back(); }
  ValueId sum_at_places(ValueId values) { return combined(zeros_like_self(), values, "sum"); }
  ValueId combined(ValueId base, ValueId values, const std::string& reduce) { return g_.one("scatter", {base, index(), values}, {{"dim", dim_}, {"reduce", reduce}}); }
  ValueId at_places(ValueId from) { return g_.one("gather", {from, index()}, {{"dim", dim_}}); }
  ValueId truth(ValueId v) { return g_.nodes().cast(v, dtype_); }

  /// The gradient of all of src: nothing reaches what has no index.
  ValueId whole(ValueId of_part) {
    for (std::size_t c = cut_.size(); c-- > 0;) {
      const auto d = static_cast<std::int64_t>(cut_[c]);
      of_part = g_.one("slice_scatter", {g_.zeros(src_[c]), of_part}, {{"dim", Dim(d)}, {"end", g_.shape(of_part)[cut_[c]]}, {"start", Dim(0)}, {"step", Dim(1)}});
    }
    return of_part;
  }

 private:
  ValueId index() const { return g_.operand(1); }
  ValueId zeros_like_self() { return g_.zeros(g_.operand()); }

  GradBuilder& g_;
  Dim dim_;
  DType dtype_;
  std::vector<std::size_t> cut_;  // dimensions in which src is longer than index
  std::vector<ValueId> src_;      // src, and what is left of it after each cut
};

/// The product over the factor, and over what is 0 there: of one such element the product without it, of two each is the factor of the other. A
/// quotient alone would hand 0 to what is 0, and so would the derivative of a formula that only counts two.
GradBuilder::Values scatter_prod(GradBuilder& g) {
  Scattered s(g);
  const auto is = [&](ValueId v, double n) { return g.one("eq", {v, g.number(n)}); };
  const auto where = [&](ValueId chosen, ValueId yes, ValueId no) { return g.one("where", {chosen, yes, no}); };
  const ValueId self = g.operand(), src = s.src(), zero = is(src, 0);
  const ValueId self_filled = where(is(self, 0), g.number(1), self), filled = where(zero, g.number(1), src);
  const ValueId of_self = g.one("div", {g.one("mul", {g.gradient(), s.combined(self_filled, src, "prod")}), self_filled});
  const ValueId zeros = s.at_places(s.sum_at_places(s.truth(zero))), sum_of_zeros = s.at_places(s.sum_at_places(where(zero, src, g.number(0))));
  const ValueId other_zeros = g.one("sub", {zeros, s.truth(zero)}), other_zero = g.one("sub", {sum_of_zeros, where(zero, src, g.number(0))});
  const ValueId of_zeros = where(is(other_zeros, 0), g.number(1), where(is(other_zeros, 1), other_zero, g.number(0)));
  const ValueId handed = s.at_places(g.one("mul", {g.gradient(), s.combined(self, filled, "prod")}));
  return {of_self, {}, s.whole(g.one("mul", {g.one("div", {handed, filled}), of_zeros}))};
}

/// What self was before the identity took its place, which torch counts among equal extremes all the same.
ValueId self_before(GradBuilder& g) {
  const ir::Graph& graph = g.nodes().graph();
  if (g.query().flag("include_self", true) || graph.value(g.operand()).kind != ir::ValueKind::result) return g.operand();
  const ir::Node& node = graph.node(graph.value(g.operand()).node);
  return node.op == "scatter" ? node.operands[0] : g.operand();
}

/// Equal extremes share.
GradBuilder::Values scatter_extreme(GradBuilder& g) {
  Scattered s(g);
  const ValueId self_is = s.truth(g.one("eq", {self_before(g), g.result()}));
  const ValueId src_is = s.truth(g.one("eq", {s.src(), s.at_places(g.result())}));
  const ValueId share = g.one("div", {g.gradient(), g.one("add", {self_is, s.sum_at_places(src_is)})});
  return {g.one("mul", {self_is, share}), {}, s.whole(g.one("mul", {src_is, s.at_places(share)}))};
}

}  // namespace

GradBuilder::Values scatter(GradBuilder& g) {
  const std::string reduce = g.query().text("reduce", "");
  if (reduce == "prod" || reduce == "multiply") return scatter_prod(g);
  if (reduce == "amax" || reduce == "amin") return scatter_extreme(g);
  GradBuilder::Values values;
  for (const auto& found : loop_gradients(g.nodes(), g.nodes().graph().value(g.result()).node, g.gradient())) values.push_back(found.value_or(ValueId()));
  return values;
}

}  // namespace tenon::ops::gradients
