#include "loops/index_algebra.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace tenon::codegen {

using ir::DimAtom;
using ir::DimOp;
using ir::DimTerm;

namespace {

// The members of IndexAlgebra hide these friends of Dim.
Dim plain_quotient(const Dim& a, const Dim& b) { return floor_div(a, b); }
Dim plain_remainder(const Dim& a, const Dim& b) { return mod(a, b); }

}  // namespace

Dim atom_of(const DimAtom& atom) {
  switch (atom.op) {
    case DimOp::symbol: return Dim::symbol(atom.symbol);
    case DimOp::floor_div: return floor_div(atom.operands[0], atom.operands[1]);
    case DimOp::mod: return mod(atom.operands[0], atom.operands[1]);
    case DimOp::min: return min(atom.operands[0], atom.operands[1]);
    case DimOp::max: return max(atom.operands[0], atom.operands[1]);
  }
  return {};
}

Dim term_of(const DimTerm& term) {
  Dim product(term.coefficient);
  for (const DimAtom& atom : term.atoms) product = product * atom_of(atom);
  return product;
}

bool is_computed(const Dim& dim) {
  bool found = false;
  dim.for_each_symbol([&](SymbolId s) { found = found || is_value(s); });
  return found;
}

bool mentions(const Dim& dim, SymbolId symbol) {
  bool found = false;
  dim.for_each_symbol([&](SymbolId s) { found |= s == symbol; });
  return found;
}

namespace {

bool atom_mentions(const DimAtom& atom, SymbolId symbol) {
  if (atom.op == DimOp::symbol) return atom.symbol == symbol;
  return mentions(atom.operands[0], symbol) || mentions(atom.operands[1], symbol);
}

/// The term without its atom at `position`.
Dim without_atom(const DimTerm& term, std::size_t position) {
  Dim product(term.coefficient);
  for (std::size_t i = 0; i < term.atoms.size(); ++i)
    if (i != position) product = product * atom_of(term.atoms[i]);
  return product;
}

}  // namespace

std::optional<Affine> split_affine(const Dim& dim, SymbolId symbol) {
  Affine result{Dim(0), Dim(dim.offset())};
  for (const DimTerm& term : dim.terms()) {
    std::size_t uses = 0, position = 0;
    for (std::size_t i = 0; i < term.atoms.size(); ++i)
      if (atom_mentions(term.atoms[i], symbol)) ++uses, position = i;
    if (uses == 0) {
      result.rest = result.rest + term_of(term);
    } else if (uses == 1 && term.atoms[position].op == DimOp::symbol) {
      result.coefficient = result.coefficient + without_atom(term, position);
    } else {
      return {};
    }
  }
  return result;
}

bool is_contiguous_or_fixed(const Dim& place, SymbolId loop) {
  const auto along = split_affine(place, loop);
  return along && (along->coefficient == Dim(0) || along->coefficient == Dim(1));
}

Dim replace_symbol(const Dim& dim, SymbolId symbol, const Dim& by) {
  if (!mentions(dim, symbol)) return dim;
  return dim.substitute([&](SymbolId s) { return s == symbol ? by : Dim::symbol(s); });
}

SymbolId IndexAlgebra::new_loop(Dim extent) {
  extents_.push_back(std::move(extent));
  return SymbolId(kFirstLoop + extents_.size() - 1);
}

void IndexAlgebra::add_loop(SymbolId loop, Dim extent) {
  extents_.resize(std::max<std::size_t>(extents_.size(), loop.value - kFirstLoop + 1));
  set_extent(loop, std::move(extent));
}

IndexAlgebra::Split IndexAlgebra::split_multiple(const Dim& a, const Dim& b) const {
  Split split{Dim(0), Dim(0)};
  if (b.is_constant()) {
    const std::int64_t k = b.constant();
    split.quotient = plain_quotient(Dim(a.offset()), b);
    split.rest = plain_remainder(Dim(a.offset()), b);
    for (const DimTerm& term : a.terms()) {
      if (term.coefficient % k == 0) {
        DimTerm quotient = term;
        quotient.coefficient /= k;
        split.quotient = split.quotient + term_of(quotient);
      } else {
        split.rest = split.rest + term_of(term);
      }
    }
    return split;
  }
  split.rest = a;
  if (b.offset() != 0 || b.terms().size() != 1) return split;
  const DimTerm& divisor = b.terms()[0];
  split.rest = Dim(a.offset());
  for (const DimTerm& term : a.terms()) {
    DimTerm quotient = term;
    bool divides = term.coefficient % divisor.coefficient == 0;
    for (const DimAtom& atom : divisor.atoms) {
      auto found = std::find_if(quotient.atoms.begin(), quotient.atoms.end(),
                                [&](const DimAtom& x) { return DimAtom::compare(x, atom) == 0; });
      if (found == quotient.atoms.end()) {
        divides = false;
        break;
      }
      quotient.atoms.erase(found);
    }
    if (divides) {
      quotient.coefficient /= divisor.coefficient;
      split.quotient = split.quotient + term_of(quotient);
    } else {
      split.rest = split.rest + term_of(term);
    }
  }
  return split;
}

bool IndexAlgebra::in_range(const Dim& value, const Dim& limit) const {
  return always_less_equal(Dim(0), value) && always_less(value, limit);
}

namespace {

/// A factor g of the divisor such that the terms of `a` that g does not divide stay below g, with the two parts of a.
struct CommonFactor {
  std::int64_t factor;
  Dim multiple, rest;  // a = factor * multiple + rest
};

template <class InRange>
std::optional<CommonFactor> find_common_factor(const Dim& a, std::int64_t divisor, InRange in_range) {
  for (const DimTerm& candidate : a.terms()) {
    const std::int64_t g = std::gcd(divisor, candidate.coefficient);
    if (g <= 1 || g == divisor) continue;
    CommonFactor split{g, plain_quotient(Dim(a.offset()), Dim(g)), plain_remainder(Dim(a.offset()), Dim(g))};
    for (const DimTerm& term : a.terms()) {
      DimTerm t = term;
      if (t.coefficient % g == 0) {
        t.coefficient /= g;
        split.multiple = split.multiple + term_of(t);
      } else {
        split.rest = split.rest + term_of(t);
      }
    }
    if (in_range(split.rest, Dim(g))) return split;
  }
  return {};
}

}  // namespace

Dim IndexAlgebra::floor_div(const Dim& a, const Dim& b) const {
  if (b == Dim(1)) return a;
  if (b == Dim(0)) return Dim(0);  // the size of an empty dimension: no element is ever asked for
  if (b.is_constant() && b.constant() <= 0) return plain_quotient(a, b);
  auto [quotient, rest] = split_multiple(a, b);
  if (rest == Dim(0) || in_range(rest, b)) return quotient;
  if (b.is_constant()) {
    if (auto common = find_common_factor(rest, b.constant(), [&](const Dim& r, const Dim& g) { return in_range(r, g); }))
      return quotient + floor_div(common->multiple, Dim(b.constant() / common->factor));
    if (rest.offset() == 0 && rest.terms().size() == 1 && rest.terms()[0].coefficient == 1 && rest.terms()[0].atoms.size() == 1) {
      const DimAtom& inner = rest.terms()[0].atoms[0];  // (x / c) / b = x / (c * b)
      if (inner.op == DimOp::floor_div && inner.operands[1].is_constant() && inner.operands[1].constant() > 0)
        return quotient + floor_div(inner.operands[0], inner.operands[1] * b);
    }
  }
  return quotient + plain_quotient(rest, b);
}

Dim IndexAlgebra::mod(const Dim& a, const Dim& b) const {
  if (b == Dim(1) || b == Dim(0)) return Dim(0);
  if (b.is_constant() && b.constant() <= 0) return plain_remainder(a, b);
  auto [quotient, rest] = split_multiple(a, b);
  if (rest == Dim(0) || in_range(rest, b)) return rest;
  if (b.is_constant())
    if (auto common = find_common_factor(rest, b.constant(), [&](const Dim& r, const Dim& g) { return in_range(r, g); }))
      return Dim(common->factor) * mod(common->multiple, Dim(b.constant() / common->factor)) + common->rest;
  return plain_remainder(rest, b);
}

/// The sum with one `a mod b` joined with its `b * floor(a / b)`, where that is a term of it or makes it shorter.
std::optional<Dim> IndexAlgebra::join_division(const Dim& sum) const {
  for (const DimTerm& term : sum.terms()) {
    for (std::size_t i = 0; i < term.atoms.size(); ++i) {
      const DimAtom& atom = term.atoms[i];
      if (atom.op != DimOp::mod) continue;
      const Dim factor = without_atom(term, i);
      const Dim multiple = factor * atom.operands[1] * floor_div(atom.operands[0], atom.operands[1]);
      const Dim others = sum - term_of(term) - multiple;
      Dim candidate = others + factor * atom.operands[0];
      if (others.terms().size() + 2 == sum.terms().size() || candidate.terms().size() < sum.terms().size()) return candidate;
    }
  }
  return std::nullopt;
}

Dim IndexAlgebra::simplify(Dim sum) const {
  while (std::optional<Dim> shorter = join_division(sum)) sum = std::move(*shorter);
  return sum;
}

Dim IndexAlgebra::rebuild_atom(const DimAtom& atom, SymbolId symbol, const Dim& by) const {
  if (atom.op == DimOp::symbol) return atom.symbol == symbol ? by : Dim::symbol(atom.symbol);
  const Dim a = rebuild(atom.operands[0], symbol, by), b = rebuild(atom.operands[1], symbol, by);
  switch (atom.op) {
    case DimOp::floor_div: return floor_div(a, b);
    case DimOp::mod: return mod(a, b);
    case DimOp::min: return min(a, b);
    default: return max(a, b);
  }
}

Dim IndexAlgebra::rebuild(const Dim& dim, SymbolId symbol, const Dim& by) const {
  if (!mentions(dim, symbol)) return dim;
  Dim sum(dim.offset());
  for (const DimTerm& term : dim.terms()) {
    Dim product(term.coefficient);
    for (const DimAtom& atom : term.atoms) product = product * rebuild_atom(atom, symbol, by);
    sum = sum + product;
  }
  return simplify(sum);
}

Dim IndexAlgebra::substitute(const Dim& dim, SymbolId symbol, const Dim& by) const { return rebuild(dim, symbol, by); }

std::optional<Dim> IndexAlgebra::bound_atom(const DimAtom& atom, bool upper) const {
  switch (atom.op) {
    case DimOp::symbol:
      if (is_graph_symbol(atom.symbol)) return Dim::symbol(atom.symbol);
      if (is_value(atom.symbol)) return {};
      return upper ? bound(extent(atom.symbol) - Dim(1), true) : Dim(0);
    case DimOp::mod: {
      if (!always_less_equal(Dim(1), atom.operands[1])) return {};
      return upper ? bound(atom.operands[1] - Dim(1), true) : Dim(0);
    }
    case DimOp::floor_div: {
      if (!atom.operands[1].is_constant() || atom.operands[1].constant() <= 0) return {};
      auto inner = bound(atom.operands[0], upper);
      if (!inner) return {};
      return floor_div(*inner, atom.operands[1]);
    }
    case DimOp::min:
    case DimOp::max: {
      auto a = bound(atom.operands[0], upper), b = bound(atom.operands[1], upper);
      if ((atom.op == DimOp::min) == upper) {  // either bound holds
        if (a && b) return atom.op == DimOp::min ? min(*a, *b) : max(*a, *b);
        return a ? a : b;
      }
      if (!a || !b) return {};
      return atom.op == DimOp::min ? min(*a, *b) : max(*a, *b);
    }
  }
  return {};
}

std::optional<Dim> IndexAlgebra::bound_term(const DimTerm& term, bool upper) const {
  const bool positive = term.coefficient > 0;
  Dim product(term.coefficient);
  for (const DimAtom& atom : term.atoms) {
    auto b = bound_atom(atom, upper == positive);
    if (!b) return {};
    if (term.atoms.size() > 1) {
      auto least = bound_atom(atom, false);
      if (!least || !non_negative(*least)) return {};
    }
    product = product * *b;
  }
  return product;
}

std::optional<Dim> IndexAlgebra::bound(const Dim& dim, bool upper) const {
  Dim sum(dim.offset());
  for (const DimTerm& term : dim.terms()) {
    auto b = bound_term(term, upper);
    if (!b) return {};
    sum = sum + *b;
  }
  return sum;
}

namespace {

/// The least value of an expression over graph symbols, or nothing when there is no bound.
std::optional<double> least_value(const Dim& dim, std::span<const ir::SymbolInfo> symbols, bool want_least) {
  double sum = static_cast<double>(dim.offset());
  for (const DimTerm& term : dim.terms()) {
    double product = static_cast<double>(term.coefficient);
    const bool least = (term.coefficient > 0) == want_least;
    for (const DimAtom& atom : term.atoms) {
      if (atom.op != DimOp::symbol || !is_graph_symbol(atom.symbol)) return {};
      const ir::SymbolInfo& info = symbols[atom.symbol.value];
      if (info.min < 0 || (!least && info.max > (std::int64_t{1} << 40))) return {};
      product *= static_cast<double>(least ? info.min : info.max);
    }
    sum += product;
  }
  return sum;
}

}  // namespace

bool IndexAlgebra::non_negative(const Dim& dim) const {
  auto least = least_value(dim, symbols_, true);
  return least && *least >= 0;
}

bool IndexAlgebra::always_less_equal(const Dim& a, const Dim& b) const {
  const Dim difference = b - a;
  if (difference.is_constant()) return difference.constant() >= 0;
  auto least = bound(difference, false);
  return least && non_negative(*least);
}

double IndexAlgebra::estimate(SymbolId symbol) const {
  if (is_loop(symbol)) return estimate(extent(symbol)) / 2;
  return static_cast<double>(std::bit_ceil(static_cast<std::uint64_t>(std::max(kAssumedSize, symbols_[symbol.value].hint))));
}

double IndexAlgebra::estimate(const Dim& dim) const {
  double sum = static_cast<double>(dim.offset());
  for (const DimTerm& term : dim.terms()) {
    double product = static_cast<double>(term.coefficient);
    for (const DimAtom& atom : term.atoms) {
      if (atom.op == DimOp::symbol) {
        product *= estimate(atom.symbol);
      } else {
        const double x = estimate(atom.operands[0]), y = estimate(atom.operands[1]);
        product *= atom.op == DimOp::floor_div ? x / std::max(1.0, y) : atom.op == DimOp::max ? std::max(x, y) : std::min(x, y);
      }
    }
    sum += product;
  }
  return std::max(0.0, sum);
}

}  // namespace tenon::codegen
