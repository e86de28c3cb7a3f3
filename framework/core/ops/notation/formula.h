// Arithmetic on values in the words of formulas, for foreign functions that are made of several ops.
#pragma once

#include "core/ops/notation/move.h"

namespace tenon::ops {

/// Foreign functions of numbers that are formulas; they belong to `cat`.
std::vector<Alias> special_names();

/// torch.unique and numpy.unique; they belong to `nonzero`.
std::vector<Alias> unique_names();

/// Whole layers of a transformer; they belong to `layer_norm`.
std::vector<Alias> encoder_layer_names();

class Formula {
 public:
  using V = ir::ValueId;
  explicit Formula(ForeignArguments& a) : a_(a) {}

  V number(double v) { return a_.builder().literal(v); }
  V integer(std::int64_t v) { return a_.builder().literal(ir::Dim(v)); }
  V two(std::string_view op, V x, V y) { return a_.one(op, {x, y}); }
  V add(V x, V y) { return two("add", x, y); }
  V sub(V x, V y) { return two("sub", x, y); }
  V mul(V x, V y) { return two("mul", x, y); }
  V div(V x, V y) { return two("div", x, y); }
  V one(std::string_view op, V x) { return a_.one(op, {x}); }
  V where(V condition, V x, V y) {
    Values both{x, y};
    a_.promote(both, Promotion::common);
    return a_.builder().one("where", {condition, both[0], both[1]});
  }
  V at_least(V x, double low) { return a_.one("clamp_min", {x, number(low)}); }
  V at_most(V x, double high) { return a_.one("clamp_max", {x, number(high)}); }
  V cast(V x, DType t) { return a_.builder().cast(x, t); }
  DType dtype(V x) { return a_.type(x).dtype; }
  const ir::Shape& shape(V x) { return a_.type(x).shape; }
  std::size_t rank(V x) { return a_.type(x).rank(); }

  /// Over all dimensions, or the given ones.
  V sum(V x, std::vector<ir::Dim> dims = {}, bool keep = false) {
    return a_.one("sum", {x}, {{"dim", std::move(dims)}, {"dtype", is_float(dtype(x)) ? dtype(x) : DType::i64}, {"keepdim", keep}});
  }
  V mean(V x) { return a_.one("mean", {x}, {{"dim", std::vector<ir::Dim>{}}, {"keepdim", false}}); }
  V filled(double value, DType t, ir::Shape shape) {
    return a_.builder().one("full", {is_float(t) ? number(value) : integer(static_cast<std::int64_t>(value))}, {{"dtype", t}, {"size", std::move(shape)}});
  }

 private:
  ForeignArguments& a_;
};

}  // namespace tenon::ops
