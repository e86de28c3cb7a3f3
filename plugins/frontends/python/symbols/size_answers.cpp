// What symbols answer to the questions of shape inference: what an op takes for granted of sizes is made so, by defining one symbol by the
// others, by narrowing a range, or by a constant.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "core/ops/infer.h"
#include "python/objects/graph_break.h"
#include "python/symbols/symbols.h"

namespace tenon::python {

namespace {

using Operator = ir::Relation::Operator;

bool has_extremes(const ir::Dim& dim) {
  const auto is_one = [](const ir::DimAtom& atom) {
    return atom.op == ir::DimOp::min || atom.op == ir::DimOp::max || std::ranges::any_of(atom.operands, has_extremes);
  };
  return std::ranges::any_of(dim.terms(), [&](const ir::DimTerm& term) { return std::ranges::any_of(term.atoms, is_one); });
}

/// The expression with each least or greatest in it as the operand that it is now.
ir::Dim as_chosen_now(const ir::Dim& dim, std::span<const std::int64_t> values) {
  ir::Dim sum = dim.offset();
  for (const ir::DimTerm& term : dim.terms()) {
    ir::Dim product = term.coefficient;
    for (const ir::DimAtom& atom : term.atoms) {
      if (atom.op == ir::DimOp::symbol) {
        product = product * ir::Dim::symbol(atom.symbol);
        continue;
      }
      const ir::Dim x = as_chosen_now(atom.operands[0], values), y = as_chosen_now(atom.operands[1], values);
      if (atom.op == ir::DimOp::floor_div) product = product * floor_div(x, y);
      else if (atom.op == ir::DimOp::mod) product = product * mod(x, y);
      else product = product * ((x.evaluate(values) < y.evaluate(values)) == (atom.op == ir::DimOp::min) ? x : y);
    }
    sum = sum + product;
  }
  return sum;
}

/// `difference` == 0 with less on the way: without what divides all of it, a number or symbols.
ir::Dim without_common_factor(const ir::Dim& difference) {
  if (difference.is_constant()) return difference;
  std::int64_t number = difference.offset();
  for (const ir::DimTerm& term : difference.terms()) number = std::gcd(number, term.coefficient);
  ir::Dim rest = floor_div(difference, number);
  if (difference.offset() != 0) return rest;
  for (const ir::DimAtom& atom : difference.terms()[0].atoms) {
    const auto has_it = [&](const ir::DimTerm& term) { return std::ranges::any_of(term.atoms, [&](const ir::DimAtom& other) { return ir::DimAtom::compare(atom, other) == 0; }); };
    if (atom.op == ir::DimOp::symbol && std::ranges::all_of(difference.terms(), has_it)) rest = floor_div(rest, ir::Dim::symbol(atom.symbol));
  }
  return rest;
}

/// Two products without the symbols that both have.
std::pair<ir::Dim, ir::Dim> without_common_symbols(const ir::Dim& a, const ir::Dim& b) {
  if (a.terms().size() != 1 || b.terms().size() != 1 || a.offset() != 0 || b.offset() != 0) return {a, b};
  ir::Dim common = 1;
  std::vector<ir::DimAtom> others = a.terms()[0].atoms;
  for (const ir::DimAtom& atom : b.terms()[0].atoms) {
    const auto other = std::ranges::find_if(others, [&](const ir::DimAtom& each) { return atom.op == ir::DimOp::symbol && ir::DimAtom::compare(atom, each) == 0; });
    if (other == others.end()) continue;
    others.erase(other);
    common = common * ir::Dim::symbol(atom.symbol);
  }
  return {floor_div(a, common), floor_div(b, common)};
}

/// Whether each term of an expression is a multiple of a number.
bool is_multiple(const ir::Dim& dim, std::int64_t of) {
  return dim.offset() % of == 0 && std::ranges::all_of(dim.terms(), [&](const ir::DimTerm& term) { return term.coefficient % of == 0; });
}

/// An expression of the same sign, at least 0 or not, in which nothing is divided by a number as a whole.
ir::Dim without_division(const ir::Dim& dim) {
  if (dim.terms().size() != 1) return dim;
  const ir::DimTerm& term = dim.terms()[0];
  if (term.atoms.size() != 1 || term.atoms[0].op != ir::DimOp::floor_div || !term.atoms[0].operands[1].is_constant()) return dim;
  const ir::Dim &x = term.atoms[0].operands[0], by = term.atoms[0].operands[1];
  if (by.constant() <= 0) return dim;
  const ir::Dim quotient = floor_div(ir::Dim(dim.offset()), ir::Dim(std::abs(term.coefficient)));  // the quotient is at least its opposite, or at most it
  return without_division(term.coefficient > 0 ? x + by * quotient : by * (quotient + ir::Dim(1)) - ir::Dim(1) - x);
}

}  // namespace

void Symbols::equal(const ir::Dim& a, const ir::Dim& b) {
  if (!is_known(a) || !is_known(b)) return;
  const ir::Dim difference = a - b;
  if (value(difference) == 0) {
    if (define_latest(without_common_factor(difference)) || pair_factors(difference) || name_quotients_of(difference) || keep_length(difference)) return;
    return fix_symbols_of(difference, "another size must equal it");
  }
  // They differ: sizes that are not 1 either way give the error of eager execution, which the caller raises.
  for (const ir::Dim& side : {a, b})
    if (value(side) == 1) {
      if (!define_latest(side - ir::Dim(1))) fix_symbols_of(side, "a size of 1 is broadcast");
    }
  const ir::Dim apart = (value(difference) > 0 ? difference : -difference) - ir::Dim(1);
  if (!narrow_single(apart)) fix_symbols_of(difference, "another size differs from it");
}

/// Of expressions with a least or greatest in them, which no symbol can be defined by.
bool Symbols::is_same(const ir::Dim& size, const ir::Dim& other) {
  return has_extremes(other) && is_known(size) && is_known(other) && value(size) == value(other) && decide(Operator::equal, size, other);
}

/// Makes `a*b - c*d` 0 where the factors of one product are those of the other, one by one, as in the sizes of an image and of what was made for
/// it. False where they are not.
bool Symbols::pair_factors(const ir::Dim& difference) {
  const std::span<const ir::DimTerm> terms = difference.terms();
  if (difference.offset() != 0 || terms.size() != 2 || terms[0].coefficient != -terms[1].coefficient || terms[0].atoms.size() != terms[1].atoms.size()) return false;
  std::vector<ir::Dim> pairs;
  std::vector<ir::DimAtom> others = terms[1].atoms;
  for (const ir::DimAtom& one : terms[0].atoms) {
    const auto same = [&](const ir::DimAtom& other) { return one.op == ir::DimOp::symbol && other.op == ir::DimOp::symbol && values_[one.symbol.value] == values_[other.symbol.value]; };
    const auto other = std::ranges::find_if(others, same);
    if (other == others.end()) return false;
    pairs.push_back(ir::Dim::symbol(one.symbol) - ir::Dim::symbol(other->symbol));
    others.erase(other);
  }
  return std::ranges::all_of(pairs, [&](const ir::Dim& pair) { return define_latest(pair); });
}

/// Makes the length of a slice, which says least and greatest of its bounds, what it is now by what it says of one of them: `stop` is `start` and a number, so
/// that the slice may lie anywhere. False where that is not said, or may be settled otherwise.
bool Symbols::keep_length(const ir::Dim& difference) {
  return !refined_ && has_extremes(difference) && facts_.extremes_decided() && define_latest(without_common_factor(as_chosen_now(difference, values_)));
}

void Symbols::settle_extent(const ir::Dim& dim) {
  if (dim.is_constant() || !is_known(dim)) return;
  const std::int64_t size = value(dim);
  if (size < 2) settle(dim);
  else if (const ir::Dim over = dim - ir::Dim(2); !narrow_single(over)) decide(Operator::less_equal, 0, over);
}

/// Makes the expression a constant by what it says of one symbol.
void Symbols::settle(const ir::Dim& dim) {
  const std::int64_t now = value(dim);
  if (!define_latest(without_common_factor(dim - ir::Dim(now)))) specialise(dim, "a size of it is special");
}

void Symbols::not_negative(const ir::Dim& asked) {
  const ir::Dim dim = without_division(asked);
  if (is_known(dim) && !narrow_single(dim) && !name_difference(dim)) decide(Operator::less_equal, 0, dim);
}

/// Makes an expression a number of its own, which has the range that the question is about, and one of those that it is over a sum with it:
/// what is asked of `stop - start` is then as simple as what is asked of a stop. False for other expressions.
bool Symbols::name_difference(const ir::Dim& dim) {
  if (history_.graph_alone) return false;  // whoever runs it finds sizes alone
  const ir::Dim varying = dim - ir::Dim(dim.offset());
  const std::optional<Summand> latest = latest_alone(varying);
  if (!latest || facts_.definition(names_[latest->symbol.value]) || facts_.expression(names_[latest->symbol.value])) return false;
  // What is made for each row of something else is as long as that: a range of what it lacks would leave open whether it has rows.
  if (!latest->rises && dim.offset() == 0 && !history_.answers_vary("as long: " + describe(varying), value(varying) == 0) && value(varying) == 0) return define_latest(varying);
  const std::size_t name = facts_.name_expression(describe(varying), over_names(varying));
  const ir::Dim difference = ir::Dim::symbol(SymbolId(name)), rest = over_names(latest->rest);
  define(names_[latest->symbol.value], latest->rises ? difference - rest : rest - difference);
  narrow_sign(name, value(dim) >= 0, true, dim.offset());
  return true;
}

/// Whether an expression over the numbers is negative in some calls and not in others, so that each answer would be a variant for each other
/// question.
bool Symbols::stays_open(const ir::Dim& dim) {
  const bool varies = history_.answers_vary(describe(dim), value(dim) >= 0);
  return varies && !facts_.extremes_decided();
}

void Symbols::clamps(const ir::Dim& asked) {
  const ir::Dim dim = without_division(asked);
  if (is_known(dim) && !stays_open(dim) && !narrow_single(dim)) decide(Operator::less_equal, 0, dim);
}

ir::Dim Symbols::extreme(const ir::Dim& a, const ir::Dim& b, bool least) {
  const ir::Dim difference = b - a;
  const ops::infer::Interval range = ops::infer::range(graph_, difference);
  if (range.least >= 0) return least ? a : b;
  if (range.most <= 0) return least ? b : a;
  if (stays_open(difference)) return least ? min(a, b) : max(a, b);
  return decide(Operator::less_equal, a, b) == least ? a : b;
}

/// One factor that is divisible now is made a multiple, the innermost first: batches, which come first, are what varies most. A symbol that
/// divides is rather taken for a factor of the same value, and a part of one (n // 4) makes that the multiple.
void Symbols::divisible(const ir::Dim& dim, const ir::Dim& by) {
  if (!is_known(dim) || !is_known(by)) return;
  if (const SymbolId divisor = by.as_symbol(); divisor && dim.terms().size() == 1)
    for (const ir::DimAtom& atom : dim.terms()[0].atoms)
      if (atom.op == ir::DimOp::symbol && values_[atom.symbol.value] == values_[divisor.value]) return equal(ir::Dim::symbol(atom.symbol), by);
  if (name_quotients_of(by)) return;
  if (const auto [rest, factor] = without_common_symbols(dim, by); !(factor == by)) return divisible(rest, factor);
  if (by.is_constant() && (is_multiple(dim, by.constant()) || name_quotient(dim, by.constant()) || name_quotients_of(dim) || fix_divisors(dim, by.constant()))) return;
  constexpr const char* kWhy = "it must be divisible";
  fix_symbols_of(dim, kWhy);
  fix_symbols_of(by, kWhy);
}

/// The same for each n // 4 and n % 4 in an expression, at any depth. False where there is none.
bool Symbols::name_quotients_of(const ir::Dim& dim) {
  bool any = false;
  for (const ir::DimTerm& term : dim.terms())
    for (const ir::DimAtom& atom : term.atoms) {
      const bool divides = (atom.op == ir::DimOp::floor_div || atom.op == ir::DimOp::mod) && atom.operands[1].is_constant();
      if (divides) any |= name_quotient(atom.operands[0], atom.operands[1].constant());
      for (const ir::Dim& operand : atom.operands) any |= name_quotients_of(operand);
    }
  return any;
}

/// Makes constants of the factors that divide a number: a program that splits a size by it says them (`x.view(2, -1, 4)`). False where there is none.
bool Symbols::fix_divisors(const ir::Dim& dim, std::int64_t number) {
  bool any = false;
  for (const ir::DimTerm& term : dim.terms())
    for (const ir::DimAtom& atom : term.atoms) {
      const std::int64_t factor = atom.op == ir::DimOp::symbol ? values_[atom.symbol.value] : 0;
      if (factor <= 1 || number % factor != 0) continue;
      fix_symbols_of(ir::Dim::symbol(atom.symbol), "it must be divisible");
      any = true;
    }
  return any;
}

/// Makes what is divisible now a multiple of a number of its own, so that it stays so whatever it is: `n` is 4 * (n // 4), under a guard. What leaves a rest now is a
/// multiple and that, where there are few rests. False where no symbol can be said so.
bool Symbols::name_quotient(const ir::Dim& given, std::int64_t by) {
  constexpr std::int64_t kFewRests = 8;
  if (history_.graph_alone || by <= 1 || given.is_constant()) return false;
  const std::int64_t left = mod(ir::Dim(value(given)), ir::Dim(by)).constant();
  if (left != 0 && by > kFewRests) return false;
  const ir::Dim dim = given - ir::Dim(left);
  std::optional<Summand> multiple = latest_alone(dim);
  if (dim.terms().size() == 1 && dim.offset() == 0) {
    by /= std::gcd(by, dim.terms()[0].coefficient);
    multiple.reset();
    for (const ir::DimAtom& atom : dim.terms()[0].atoms)
      if (atom.op == ir::DimOp::symbol && values_[atom.symbol.value] % by == 0) multiple = Summand{atom.symbol, true, ir::Dim(0)};
  }
  if (!multiple || by == 1 || facts_.definition(names_[multiple->symbol.value])) return false;
  const ir::Dim symbol = ir::Dim::symbol(multiple->symbol), whole = multiple->rises ? symbol + multiple->rest : multiple->rest - symbol;
  const std::size_t name = facts_.name_expression(fmt::format("{} // {}", describe(whole), by), over_names(floor_div(whole, ir::Dim(by))));
  const ir::Dim times = ir::Dim::symbol(SymbolId(name)) * ir::Dim(by), rest = over_names(multiple->rest);
  if (const std::int64_t least = ops::infer::range(graph_, whole).least; least > -by)  // a multiple: the quotient is rounded up
    facts_.narrow(name, {least / by + (least % by > 0), std::numeric_limits<std::int64_t>::max()});
  define(names_[multiple->symbol.value], multiple->rises ? times - rest : rest - times);
  return true;
}

void Symbols::constant(const ir::Dim& dim) {
  if (!is_known(dim)) return;
  const std::vector<std::string> names = names_of(dim);
  if (library_may_ && std::ranges::any_of(names, [&](const std::string& name) { return history_.takes_several(name); })) throw GraphBreak("an operation goes by a number that keeps varying");
  if (wear_out(names)) throw GraphBreak("an operation goes by a number that keeps varying", "the operation runs as plain Python, what follows is compiled on");
  fix_symbols_of(dim, "an operation goes by it");
}

bool Symbols::is_within(const ir::Dim& dim, std::int64_t least, std::int64_t most) {
  const bool all = least == std::numeric_limits<std::int64_t>::min() && most == std::numeric_limits<std::int64_t>::max();
  return all || !is_known(dim) || (decide(Operator::less_equal, least, dim) && decide(Operator::less_equal, dim, most));
}

/// Makes the symbol that came last in `difference` == 0 the value of an expression over the others, where it stands alone with
/// coefficient 1 or -1.
bool Symbols::define_latest(const ir::Dim& difference) {
  const std::optional<Summand> latest = latest_alone(difference);
  if (!latest) return false;
  define(names_[latest->symbol.value], over_names(latest->rises ? -latest->rest : latest->rest));
  return true;
}

/// Once a capture: until the next one the number stands in questions as itself, which are asked again there.
void Symbols::define(std::size_t name, ir::Dim value) {
  if (defined_.insert(name).second) refine(facts_.define(name, std::move(value)));
}

/// The symbol that came last, where it stands alone with coefficient 1 or -1.
std::optional<Symbols::Summand> Symbols::latest_alone(const ir::Dim& sum) const {
  SymbolId latest;
  std::vector<int> occurrences(values_.size());
  sum.for_each_symbol([&](SymbolId s) {
    ++occurrences[s.value];
    if (!latest || s.value > latest.value) latest = s;
  });
  if (!latest || occurrences[latest.value] != 1) return std::nullopt;
  for (const ir::DimTerm& term : sum.terms()) {
    if (term.atoms.size() != 1 || term.atoms[0].op != ir::DimOp::symbol || term.atoms[0].symbol != latest) continue;
    if (term.coefficient != 1 && term.coefficient != -1) return std::nullopt;
    return Summand{latest, term.coefficient == 1, sum - ir::Dim::symbol(latest) * ir::Dim(term.coefficient)};
  }
  return std::nullopt;
}

void Symbols::fix_symbols_of(const ir::Dim& dim, const char* why) {
  if (refined_) return;
  if (has_extremes(dim) && facts_.decide_extremes()) return refine(true);
  dim.for_each_symbol([&](SymbolId s) {
    if (!facts_.fix(names_[s.value])) return;
    learned_ = true;
    say_constant(describe(ir::Dim::symbol(s)), values_[s.value], why);
  });
}

}  // namespace tenon::python
