// What sums, products, quotients and powers are of complex numbers.
#include <algorithm>
#include <cmath>

#include "core/ops/notation/complex_parts.h"

namespace tenon::ops {
namespace {

Parts complex_sum(ComplexFormula& f, std::span<const Parts> z, const OpQuery&, Flavour) {
  return {f.add(z[0].real, z[1].real), f.add(z[0].imaginary, z[1].imaginary)};
}

Parts complex_difference(ComplexFormula& f, std::span<const Parts> z, const OpQuery&, Flavour) {
  return {f.sub(z[0].real, z[1].real), f.sub(z[0].imaginary, z[1].imaginary)};
}

Parts complex_product(ComplexFormula& f, std::span<const Parts> z, const OpQuery&, Flavour) { return f.product(z[0], z[1]); }

/// Smith's way (NumPy's loops; c10::complex): by the part of the divisor that is larger; a divisor of 0 divides both parts by |0|.
Parts complex_quotient(ComplexFormula& f, std::span<const Parts> z, const OpQuery&, Flavour) {
  const Parts &a = z[0], &b = z[1];
  const ir::ValueId by_real = f.two("ge", f.one("abs", b.real), f.one("abs", b.imaginary)), none = f.number(0);
  const ir::ValueId large = f.where(by_real, b.real, b.imaginary), small = f.where(by_real, b.imaginary, b.real);
  const ir::ValueId x = f.where(by_real, a.real, a.imaginary), y = f.where(by_real, a.imaginary, a.real);
  const ir::ValueId zero = f.two("logical_and", by_real, f.two("eq", large, none)), ratio = f.div(small, large);
  const ir::ValueId scale = f.div(f.number(1), f.where(zero, f.one("abs", large), f.add(large, f.mul(small, ratio))));
  const ir::ValueId real = f.mul(f.add(x, f.where(zero, f.one("abs", large), f.mul(y, ratio))), scale);
  const ir::ValueId turned = f.mul(f.sub(y, f.where(zero, f.one("abs", large), f.mul(x, ratio))), scale);
  return {real, f.where(by_real, turned, f.one("neg", turned))};
}

Parts complex_negative(ComplexFormula& f, std::span<const Parts> z, const OpQuery&, Flavour) { return {f.one("neg", z[0].real), f.one("neg", z[0].imaginary)}; }

Parts complex_square(ComplexFormula& f, std::span<const Parts> z, const OpQuery&, Flavour) { return f.product(z[0], z[0]); }

/// Squares, and torch's cubes, are products; other powers are the library's own.
Parts complex_power(ComplexFormula& f, std::span<const Parts> z, const OpQuery& q, Flavour flavour) {
  const ir::Literal* exponent = q.literal(1);
  const ir::Dim* whole = exponent ? std::get_if<ir::Dim>(exponent) : nullptr;
  const double* number = exponent ? std::get_if<double>(exponent) : nullptr;
  const double n = whole && whole->is_constant() ? static_cast<double>(whole->constant()) : number ? *number : NAN;
  if (n == 2) return f.product(z[0], z[0]);
  if (n == 3 && flavour == Flavour::torch) return f.product(f.product(z[0], z[0]), z[0]);
  throw Exception(Code::unsupported, "a power of complex numbers that is no square");
}

ir::ValueId complex_size(ComplexFormula& f, std::span<const Parts> z, const OpQuery&, Flavour) { return f.two("hypot", z[0].real, z[0].imaginary); }

}  // namespace

Family with_complex_arithmetic(Family all) {
  all = with_complex(std::move(all), {{"add", complex_sum},
                                      {"sub", complex_difference},
                                      {"mul", complex_product},
                                      {"div", complex_quotient},
                                      {"neg", complex_negative},
                                      {"pow", complex_power},
                                      {"square", complex_square}});
  Op& size = *std::ranges::find(all, std::string_view("abs"), &Op::name);
  size = with_value_of_complex(std::move(size), complex_size);
  return all;
}

}  // namespace tenon::ops
