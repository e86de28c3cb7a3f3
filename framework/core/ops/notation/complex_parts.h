// Complex arithmetic as arithmetic of real and imaginary parts: what ops of complex operands are made of.
#pragma once

#include "core/ops/notation/family.h"

namespace tenon::ops {

/// A complex number by its parts, tensors of one real dtype.
struct Parts {
  ir::ValueId real, imaginary;
};

/// The nodes of complex formulas. The results broadcast as the operands do.
class ComplexFormula {
 public:
  using V = ir::ValueId;
  explicit ComplexFormula(NodeBuilder& builder) : b_(builder) {}

  /// The parts of a complex tensor: what it was made of where that is known. Of a real tensor or a number the imaginary part is 0.
  Parts of(V value, DType real);
  V join(const Parts& z) { return b_.one("complex", {z.real, z.imaginary}); }

  V add(V x, V y) { return b_.one("add", {x, y}); }
  V sub(V x, V y) { return b_.one("sub", {x, y}); }
  V mul(V x, V y) { return b_.one("mul", {x, y}); }
  V div(V x, V y) { return b_.one("div", {x, y}); }
  V one(std::string_view op, V x) { return b_.one(op, {x}); }
  V two(std::string_view op, V x, V y) { return b_.one(op, {x, y}); }
  V number(double value) { return b_.literal(value); }
  V where(V condition, V x, V y) { return b_.one("where", {condition, x, y}); }

  Parts product(const Parts& a, const Parts& b);

 private:
  NodeBuilder& b_;
};

using OfParts = std::function<Parts(ComplexFormula&, std::span<const Parts>, const OpQuery&, Flavour)>;
using ValueOfParts = std::function<ir::ValueId(ComplexFormula&, std::span<const Parts>, const OpQuery&, Flavour)>;

/// Gives an op its meaning for complex operands: complex parts from complex parts, or another value (a real one, a truth) of them.
Op with_complex(Op op, OfParts parts);
Op with_value_of_complex(Op op, ValueOfParts value);
/// A linear function along each part by itself: the op with its own attributes, `dtype` among them by the real type.
Op part_by_part(Op op);
/// Gives ops of a family their complex meanings, by name.
Family with_complex(Family ops, const std::vector<std::pair<std::string_view, OfParts>>& meanings);
/// The same for sums, products, quotients, powers and sizes.
Family with_complex_arithmetic(Family ops);

}  // namespace tenon::ops
