#include "core/ir/dim.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "core/abi/graph_buffer.h"
#include "core/base/error.h"
#include "core/base/hash.h"

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
    if (merged.empty()) return d;
    auto shared = std::make_unique<DimTerms>();
    shared->size = size_of_terms(merged);
    shared->hash = hash_of_terms(merged);
    shared->terms = std::move(merged);
    check_size(shared->size + 2);
    d.terms_ = shared.release();
    return d;
  }

  static void check_size(std::size_t size) {
    TENON_USER_CHECK(size <= TENON_MAX_EXPRESSION_SIZE, "a symbolic size has become too large: {} leaves and operations are more than {}", size,
                     TENON_MAX_EXPRESSION_SIZE);
  }

  /// Leaves and operations, as the graph buffer counts them.
  static std::size_t size_of(const Dim& d) { return d.terms_ ? d.terms_->size + (d.constant_ != 0 ? 2 : 0) : 1; }

  static std::size_t size_of_terms(const std::vector<DimTerm>& terms) {
    std::size_t size = terms.size() - 1;
    for (const DimTerm& t : terms) {
      size += t.atoms.size() - 1 + (t.coefficient != 1 ? 2 : 0);
      for (const DimAtom& a : t.atoms) size += a.op == DimOp::symbol ? 1 : 1 + size_of(a.operands[0]) + size_of(a.operands[1]);
    }
    return size;
  }

  static std::size_t hash_of_terms(const std::vector<DimTerm>& terms) {
    std::size_t h = terms.size();
    for (const DimTerm& t : terms) {
      h = mix(h, static_cast<std::size_t>(t.coefficient));
      for (const DimAtom& a : t.atoms) {
        h = mix(h, static_cast<std::size_t>(a.op) * 31 + a.symbol.value);
        for (const Dim& d : a.operands) h = mix(h, d.hash());
      }
    }
    return h;
  }

  static Dim atom(DimAtom a) {
    DimTerm t;
    t.atoms.push_back(std::move(a));
    return make(0, {std::move(t)});
  }

  static Dim binary(DimOp op, const Dim& a, const Dim& b) { return atom({op, SymbolId(), {a, b}}); }

  static DimTerm product(const DimTerm& a, const DimTerm& b) {
    check_size(a.atoms.size() + b.atoms.size());
    DimTerm t{checked_mul(a.coefficient, b.coefficient), a.atoms};
    t.atoms.insert(t.atoms.end(), b.atoms.begin(), b.atoms.end());
    std::sort(t.atoms.begin(), t.atoms.end(), [](const DimAtom& x, const DimAtom& y) { return DimAtom::compare(x, y) < 0; });
    return t;
  }

  /// a / b for a multiple of b, where b is one product (a constant, or a term without a summand beside it).
  static std::optional<Dim> exact_quotient(const Dim& a, const Dim& b) {
    const DimTerm* monomial = b.is_constant() ? nullptr : &b.terms()[0];
    if (monomial && (b.terms().size() != 1 || b.constant_ != 0)) return a == b ? std::optional(Dim(1)) : std::nullopt;
    const std::int64_t divisor = monomial ? monomial->coefficient : b.constant_;
    if (divisor == -1 || a.constant_ % divisor != 0 || (monomial && a.constant_ != 0)) return std::nullopt;
    std::vector<DimTerm> terms(a.terms().begin(), a.terms().end());
    std::int64_t constant = a.constant_ / divisor;
    for (auto t = terms.begin(); t != terms.end();) {
      if (t->coefficient % divisor != 0 || (monomial && !take_away(t->atoms, monomial->atoms))) return std::nullopt;
      t->coefficient /= divisor;
      if (t->atoms.empty()) {
        constant = checked_add(constant, t->coefficient);
        t = terms.erase(t);
      } else {
        ++t;
      }
    }
    return make(constant, std::move(terms));
  }

  /// Removes the sorted `some` from the sorted `all`, if they are all there.
  static bool take_away(std::vector<DimAtom>& all, const std::vector<DimAtom>& some) {
    auto from = all.begin();
    for (const DimAtom& a : some) {
      from = std::find_if(from, all.end(), [&](const DimAtom& other) { return DimAtom::compare(a, other) == 0; });
      if (from == all.end()) return false;
      from = all.erase(from);
    }
    return true;
  }

  /// a as multiple*b + rest, where the rest has a constant summand in [0, b) and no term with a coefficient that b divides; b > 0.
  static std::pair<Dim, Dim> split(const Dim& a, std::int64_t b) {
    std::vector<DimTerm> multiples, rest;
    for (const DimTerm& t : a.terms()) (t.coefficient % b == 0 ? multiples : rest).push_back(t);
    for (DimTerm& t : multiples) t.coefficient /= b;
    return {make(floor_div_value(a.constant_, b), std::move(multiples)), make(mod_value(a.constant_, b), std::move(rest))};
  }

  /// floor_div(floor_div(x, y), b) is floor_div(x, y*b), for positive constants.
  static std::optional<Dim> nested_quotient(const Dim& a, std::int64_t b) {
    if (a.constant_ != 0 || a.terms().size() != 1) return std::nullopt;
    const DimTerm& t = a.terms()[0];
    if (t.coefficient != 1 || t.atoms.size() != 1 || t.atoms[0].op != DimOp::floor_div) return std::nullopt;
    const Dim& y = t.atoms[0].operands[1];
    std::int64_t divisor;
    if (!y.is_constant() || y.constant_ <= 0 || __builtin_mul_overflow(y.constant_, b, &divisor)) return std::nullopt;
    return floor_div(t.atoms[0].operands[0], divisor);
  }

  static Dim quotient_by_positive(const Dim& a, std::int64_t b) {
    const auto [multiple, rest] = split(a, b);
    if (rest.is_constant()) return multiple;
    if (auto nested = nested_quotient(rest, b)) return multiple + *nested;
    return multiple + binary(DimOp::floor_div, rest, b);
  }

  static Dim remainder_by_positive(const Dim& a, std::int64_t b) {
    std::vector<DimTerm> terms(a.terms().begin(), a.terms().end());
    for (DimTerm& t : terms) t.coefficient = mod_value(t.coefficient, b);
    const Dim rest = make(mod_value(a.constant_, b), std::move(terms));
    return rest.is_constant() ? rest : binary(DimOp::mod, rest, b);
  }
};

void Dim::retain(const DimTerms* terms) { terms->owners.fetch_add(1, std::memory_order_relaxed); }

void Dim::release(const DimTerms* terms) {
  if (terms->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete terms;
}

Dim Dim::symbol(SymbolId id) { return DimArithmetic::atom({DimOp::symbol, id, {}}); }

std::int64_t Dim::constant() const {
  TENON_CHECK(is_constant(), "a symbolic size was used as a constant");
  return constant_;
}

SymbolId Dim::as_symbol() const {
  if (constant_ != 0 || !terms_ || terms_->terms.size() != 1) return {};
  const DimTerm& t = terms_->terms.front();
  return t.coefficient == 1 && t.atoms.size() == 1 && t.atoms[0].op == DimOp::symbol ? t.atoms[0].symbol : SymbolId();
}

std::span<const DimTerm> Dim::terms() const { return terms_ ? std::span<const DimTerm>(terms_->terms) : std::span<const DimTerm>(); }

Dim operator+(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return checked_add(a.constant_, b.constant_);
  std::vector<DimTerm> terms(a.terms().begin(), a.terms().end());
  terms.insert(terms.end(), b.terms().begin(), b.terms().end());
  return DimArithmetic::make(checked_add(a.constant_, b.constant_), std::move(terms));
}

Dim operator-(const Dim& a, const Dim& b) { return a + b * Dim(-1); }

Dim operator*(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return checked_mul(a.constant_, b.constant_);
  DimArithmetic::check_size((a.terms().size() + 1) * (b.terms().size() + 1) / 4);
  std::vector<DimTerm> terms;
  for (const DimTerm& t : a.terms()) {
    if (b.constant_ != 0) terms.push_back({checked_mul(t.coefficient, b.constant_), t.atoms});
    for (const DimTerm& u : b.terms()) terms.push_back(DimArithmetic::product(t, u));
  }
  if (a.constant_ != 0)
    for (const DimTerm& u : b.terms()) terms.push_back({checked_mul(u.coefficient, a.constant_), u.atoms});
  return DimArithmetic::make(checked_mul(a.constant_, b.constant_), std::move(terms));
}

bool operator==(const Dim& a, const Dim& b) {
  if (a.constant_ != b.constant_) return false;
  if (a.terms_ == b.terms_) return true;
  return a.terms_ && b.terms_ && a.terms_->hash == b.terms_->hash && Dim::compare(a, b) == 0;
}

Dim floor_div(const Dim& a, const Dim& b) {
  if (b.is_constant()) check_divisor(b.constant_);
  if (a.is_constant() && b.is_constant()) return floor_div_value(a.constant_, b.constant_);
  if (a == Dim(0)) return 0;
  if (b == Dim(-1)) return -a;
  if (auto quotient = DimArithmetic::exact_quotient(a, b)) return *quotient;
  if (b.is_constant() && b.constant_ > 0) return DimArithmetic::quotient_by_positive(a, b.constant_);
  return DimArithmetic::binary(DimOp::floor_div, a, b);
}

Dim mod(const Dim& a, const Dim& b) {
  if (b.is_constant()) check_divisor(b.constant_);
  if (a.is_constant() && b.is_constant()) return mod_value(a.constant_, b.constant_);
  if (a == Dim(0) || b == Dim(-1) || DimArithmetic::exact_quotient(a, b)) return 0;
  if (b.is_constant() && b.constant_ > 0) return DimArithmetic::remainder_by_positive(a, b.constant_);
  return DimArithmetic::binary(DimOp::mod, a, b);
}

namespace {

/// a - b where that is a constant; nothing as well when the difference is too large to compute.
std::optional<std::int64_t> constant_difference(const Dim& a, const Dim& b) {
  const auto x = a.terms(), y = b.terms();
  const auto same = [](const DimTerm& s, const DimTerm& t) { return s.coefficient == t.coefficient && compare_atoms(s.atoms, t.atoms) == 0; };
  std::int64_t difference;
  if (!std::equal(x.begin(), x.end(), y.begin(), y.end(), same) || __builtin_sub_overflow(a.offset(), b.offset(), &difference)) return std::nullopt;
  return difference;
}

}  // namespace

Dim min(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return std::min(a.constant_, b.constant_);
  if (const auto d = constant_difference(a, b)) return *d <= 0 ? a : b;
  return Dim::compare(a, b) <= 0 ? DimArithmetic::binary(DimOp::min, a, b) : DimArithmetic::binary(DimOp::min, b, a);
}

Dim max(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return std::max(a.constant_, b.constant_);
  if (const auto d = constant_difference(a, b)) return *d >= 0 ? a : b;
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

std::size_t Dim::hash() const { return mix(terms_ ? terms_->hash : 0, static_cast<std::size_t>(constant_)); }

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

bool bytes_are_countable(std::span<const Dim> dims, std::size_t element_bytes) {
  auto bytes = static_cast<std::int64_t>(element_bytes);
  for (const Dim& d : dims)
    if (d.is_constant() && d.constant() > 0 && __builtin_mul_overflow(bytes, d.constant(), &bytes)) return false;
  return true;
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

Shape channels_last_strides(std::span<const Dim> shape) {
  Shape strides(shape.size());
  Dim step = shape[1];
  strides[1] = Dim(1);
  for (std::size_t d = shape.size(); d-- > 2;) strides[d] = step, step = step * shape[d];
  strides[0] = step;
  return strides;
}

}  // namespace tenon::ir
