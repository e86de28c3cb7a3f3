#include "core/ir/dim.h"

#include <algorithm>

#include "core/base/error.h"

namespace tenon::ir {
namespace {

std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t r;
  TENON_USER_CHECK(!__builtin_add_overflow(a, b, &r), "integer overflow in a symbolic size: {} + {}", a, b);
  return r;
}

std::int64_t checked_mul(std::int64_t a, std::int64_t b) {
  std::int64_t r;
  TENON_USER_CHECK(!__builtin_mul_overflow(a, b, &r), "integer overflow in a symbolic size: {} * {}", a, b);
  return r;
}

void check_divisor(std::int64_t b) { TENON_USER_CHECK(b != 0, "division of a symbolic size by zero"); }

std::int64_t floor_div_value(std::int64_t a, std::int64_t b) {
  check_divisor(b);
  TENON_USER_CHECK(!(a == INT64_MIN && b == -1), "integer overflow in a symbolic size: {} / {}", a, b);
  std::int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

std::int64_t mod_value(std::int64_t a, std::int64_t b) {
  check_divisor(b);
  if (b == -1) return 0;
  std::int64_t r = a % b;
  return (r != 0 && (r < 0) != (b < 0)) ? r + b : r;
}

int compare_atoms(const std::vector<DimAtom>& a, const std::vector<DimAtom>& b) {
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (int c = DimAtom::compare(a[i], b[i])) return c;
  return 0;
}

int compare_numbers(std::int64_t a, std::int64_t b) { return a < b ? -1 : a > b ? 1 : 0; }

std::size_t mix(std::size_t seed, std::size_t value) { return seed ^ (value + 0x9e3779b97f4a7c15ull + (seed << 6) + (seed >> 2)); }

std::int64_t evaluate_atom(const DimAtom& atom, std::span<const std::int64_t> symbols) {
  if (atom.op == DimOp::symbol) {
    TENON_CHECK(atom.symbol.value < symbols.size(), "symbol {} has no value", atom.symbol.value);
    return symbols[atom.symbol.value];
  }
  const std::int64_t a = atom.operands[0].evaluate(symbols), b = atom.operands[1].evaluate(symbols);
  switch (atom.op) {
    case DimOp::floor_div: return floor_div_value(a, b);
    case DimOp::mod: return mod_value(a, b);
    case DimOp::min: return std::min(a, b);
    default: return std::max(a, b);
  }
}

std::string atom_text(const DimAtom& atom, const std::function<std::string(SymbolId)>& symbol_name) {
  if (atom.op == DimOp::symbol) return symbol_name(atom.symbol);
  static constexpr const char* kNames[] = {"", "floor_div", "mod", "min", "max"};
  return fmt::format("{}({}, {})", kNames[static_cast<int>(atom.op)], atom.operands[0].to_string(symbol_name),
                     atom.operands[1].to_string(symbol_name));
}

}  // namespace

/// Builds the canonical form: like terms merged, zero terms dropped, terms and atoms sorted.
struct DimArithmetic {
  static Dim make(std::int64_t constant, std::vector<DimTerm> terms) {
    std::sort(terms.begin(), terms.end(), [](const DimTerm& a, const DimTerm& b) { return compare_atoms(a.atoms, b.atoms) < 0; });
    std::vector<DimTerm> merged;
    for (DimTerm& t : terms) {
      if (!merged.empty() && compare_atoms(merged.back().atoms, t.atoms) == 0)
        merged.back().coefficient = checked_add(merged.back().coefficient, t.coefficient);
      else
        merged.push_back(std::move(t));
    }
    std::erase_if(merged, [](const DimTerm& t) { return t.coefficient == 0; });
    Dim d(constant);
    if (!merged.empty()) d.terms_ = std::make_shared<const std::vector<DimTerm>>(std::move(merged));
    return d;
  }

  static Dim atom(DimAtom a) {
    DimTerm t;
    t.atoms.push_back(std::move(a));
    return make(0, {std::move(t)});
  }

  static Dim binary(DimOp op, const Dim& a, const Dim& b) { return atom({op, SymbolId(), {a, b}}); }

  static DimTerm product(const DimTerm& a, const DimTerm& b) {
    DimTerm t{checked_mul(a.coefficient, b.coefficient), a.atoms};
    t.atoms.insert(t.atoms.end(), b.atoms.begin(), b.atoms.end());
    std::sort(t.atoms.begin(), t.atoms.end(), [](const DimAtom& x, const DimAtom& y) { return DimAtom::compare(x, y) < 0; });
    return t;
  }

  /// All coefficients and the constant are multiples of `divisor`.
  static bool divides(std::int64_t divisor, const Dim& d) {
    return d.constant_ % divisor == 0 &&
           std::all_of(d.terms().begin(), d.terms().end(), [&](const DimTerm& t) { return t.coefficient % divisor == 0; });
  }

  static Dim exact_quotient(const Dim& d, std::int64_t divisor) {
    std::vector<DimTerm> terms(d.terms().begin(), d.terms().end());
    for (DimTerm& t : terms) t.coefficient /= divisor;
    return make(d.constant_ / divisor, std::move(terms));
  }
};

Dim Dim::symbol(SymbolId id) { return DimArithmetic::atom({DimOp::symbol, id, {}}); }

std::int64_t Dim::constant() const {
  TENON_CHECK(is_constant(), "a symbolic size was used as a constant");
  return constant_;
}

SymbolId Dim::as_symbol() const {
  if (constant_ != 0 || !terms_ || terms_->size() != 1) return {};
  const DimTerm& t = terms_->front();
  return t.coefficient == 1 && t.atoms.size() == 1 && t.atoms[0].op == DimOp::symbol ? t.atoms[0].symbol : SymbolId();
}

std::span<const DimTerm> Dim::terms() const { return terms_ ? std::span<const DimTerm>(*terms_) : std::span<const DimTerm>(); }

Dim operator+(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return checked_add(a.constant_, b.constant_);
  std::vector<DimTerm> terms(a.terms().begin(), a.terms().end());
  terms.insert(terms.end(), b.terms().begin(), b.terms().end());
  return DimArithmetic::make(checked_add(a.constant_, b.constant_), std::move(terms));
}

Dim operator-(const Dim& a, const Dim& b) { return a + b * Dim(-1); }

Dim operator*(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return checked_mul(a.constant_, b.constant_);
  std::vector<DimTerm> terms;
  for (const DimTerm& t : a.terms()) {
    if (b.constant_ != 0) terms.push_back({checked_mul(t.coefficient, b.constant_), t.atoms});
    for (const DimTerm& u : b.terms()) terms.push_back(DimArithmetic::product(t, u));
  }
  if (a.constant_ != 0)
    for (const DimTerm& u : b.terms()) terms.push_back({checked_mul(u.coefficient, a.constant_), u.atoms});
  return DimArithmetic::make(checked_mul(a.constant_, b.constant_), std::move(terms));
}

bool operator==(const Dim& a, const Dim& b) { return a.terms_ == b.terms_ ? a.constant_ == b.constant_ : Dim::compare(a, b) == 0; }

Dim floor_div(const Dim& a, const Dim& b) {
  if (b.is_constant()) {
    check_divisor(b.constant_);
    if (a.is_constant()) return floor_div_value(a.constant_, b.constant_);
    if (DimArithmetic::divides(b.constant_, a)) return DimArithmetic::exact_quotient(a, b.constant_);
  }
  if (!b.is_constant() && a == b) return 1;
  if (a.is_constant() && a.constant_ == 0) return 0;
  return DimArithmetic::binary(DimOp::floor_div, a, b);
}

Dim mod(const Dim& a, const Dim& b) {
  if (b.is_constant()) {
    check_divisor(b.constant_);
    if (a.is_constant()) return mod_value(a.constant_, b.constant_);
    if (DimArithmetic::divides(b.constant_, a)) return 0;
  }
  if (a == b || (a.is_constant() && a.constant_ == 0)) return 0;
  return DimArithmetic::binary(DimOp::mod, a, b);
}

Dim min(const Dim& a, const Dim& b) {
  if (const Dim d = a - b; d.is_constant()) return d.constant_ <= 0 ? a : b;
  return Dim::compare(a, b) <= 0 ? DimArithmetic::binary(DimOp::min, a, b) : DimArithmetic::binary(DimOp::min, b, a);
}

Dim max(const Dim& a, const Dim& b) {
  if (const Dim d = a - b; d.is_constant()) return d.constant_ >= 0 ? a : b;
  return Dim::compare(a, b) <= 0 ? DimArithmetic::binary(DimOp::max, a, b) : DimArithmetic::binary(DimOp::max, b, a);
}

std::int64_t Dim::evaluate(std::span<const std::int64_t> symbols) const {
  std::int64_t total = constant_;
  for (const DimTerm& t : terms()) {
    std::int64_t product = t.coefficient;
    for (const DimAtom& a : t.atoms) product = checked_mul(product, evaluate_atom(a, symbols));
    total = checked_add(total, product);
  }
  return total;
}

Dim Dim::substitute(const std::function<Dim(SymbolId)>& replacement) const {
  Dim total = constant_;
  for (const DimTerm& t : terms()) {
    Dim product = t.coefficient;
    for (const DimAtom& a : t.atoms) {
      if (a.op == DimOp::symbol) {
        product = product * replacement(a.symbol);
        continue;
      }
      const Dim x = a.operands[0].substitute(replacement), y = a.operands[1].substitute(replacement);
      switch (a.op) {
        case DimOp::floor_div: product = product * floor_div(x, y); break;
        case DimOp::mod: product = product * mod(x, y); break;
        case DimOp::min: product = product * min(x, y); break;
        default: product = product * max(x, y); break;
      }
    }
    total = total + product;
  }
  return total;
}

void Dim::for_each_symbol(const std::function<void(SymbolId)>& visit) const {
  for (const DimTerm& t : terms())
    for (const DimAtom& a : t.atoms) {
      if (a.op == DimOp::symbol) visit(a.symbol);
      for (const Dim& d : a.operands) d.for_each_symbol(visit);
    }
}

std::string Dim::to_string(const std::function<std::string(SymbolId)>& symbol_name) const {
  std::string text;
  for (const DimTerm& t : terms()) {
    std::string product;
    for (const DimAtom& a : t.atoms) product += (product.empty() ? "" : "*") + atom_text(a, symbol_name);
    // The least integer has no magnitude that could be read back: it keeps its sign.
    const bool negative = t.coefficient < 0 && t.coefficient != INT64_MIN;
    const std::int64_t magnitude = negative ? -t.coefficient : t.coefficient;
    if (magnitude != 1) product += fmt::format("*{}", magnitude);
    text += text.empty() ? (negative ? "-" : "") : (negative ? " - " : " + ");
    text += product;
  }
  if (text.empty()) return std::to_string(constant_);
  if (constant_ > 0) text += fmt::format(" + {}", constant_);
  if (constant_ == INT64_MIN) text += fmt::format(" + {}", constant_);
  else if (constant_ < 0) text += fmt::format(" - {}", -constant_);
  return text;
}

std::size_t Dim::hash() const {
  std::size_t h = std::hash<std::int64_t>{}(constant_);
  for (const DimTerm& t : terms()) {
    h = mix(h, std::hash<std::int64_t>{}(t.coefficient));
    for (const DimAtom& a : t.atoms) {
      h = mix(h, static_cast<std::size_t>(a.op) * 31 + a.symbol.value);
      for (const Dim& d : a.operands) h = mix(h, d.hash());
    }
  }
  return h;
}

int Dim::compare(const Dim& a, const Dim& b) {
  const auto x = a.terms(), y = b.terms();
  for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
    if (int c = compare_atoms(x[i].atoms, y[i].atoms)) return c;
    if (int c = compare_numbers(x[i].coefficient, y[i].coefficient)) return c;
  }
  if (x.size() != y.size()) return x.size() < y.size() ? -1 : 1;
  return compare_numbers(a.constant_, b.constant_);
}

int DimAtom::compare(const DimAtom& a, const DimAtom& b) {
  if (a.op != b.op) return a.op < b.op ? -1 : 1;
  if (a.op == DimOp::symbol) return compare_numbers(a.symbol.value, b.symbol.value);
  for (std::size_t i = 0; i < 2; ++i)
    if (int c = Dim::compare(a.operands[i], b.operands[i])) return c;
  return 0;
}

Dim product(std::span<const Dim> dims) {
  Dim total = 1;
  for (const Dim& d : dims) total = total * d;
  return total;
}

Shape row_major_strides(std::span<const Dim> shape) {
  Shape strides(shape.size());
  Dim step = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    step = step * (shape[i].is_constant() && shape[i].constant() == 0 ? Dim(1) : shape[i]);
  }
  return strides;
}

}  // namespace tenon::ir
