#include "core/ir/relation.h"

#include <map>
#include <numeric>

#include "core/base/error.h"

namespace tenon::ir {
namespace {

constexpr std::int64_t kMostCases = 256;

/// By symbol: what its value must be a multiple of, plus a constant, for nothing to be divided with a remainder.
using Periods = std::map<std::uint32_t, std::int64_t>;

/// False where something else than constants divides, or there are too many cases.
bool collect_periods(const Dim& dim, std::int64_t divisor, Periods& periods) {
  for (const DimTerm& term : dim.terms())
    for (const DimAtom& atom : term.atoms) {
      if (atom.op == DimOp::symbol) {
        std::int64_t& period = periods.try_emplace(atom.symbol.value, 1).first->second;
        period = std::lcm(period, divisor);
        if (period > kMostCases) return false;
        continue;
      }
      const bool divides = atom.op == DimOp::floor_div || atom.op == DimOp::mod;
      const std::int64_t by = divides && atom.operands[1].is_constant() ? atom.operands[1].constant() : 0;
      if (by < 1 || by > kMostCases || !collect_periods(atom.operands[0], divisor * by, periods)) return false;
    }
  return true;
}

}  // namespace

bool are_always_equal(const Dim& a, const Dim& b) {
  const Dim difference = a - b;
  if (difference.is_constant()) return difference == Dim(0);
  Periods periods;
  if (!collect_periods(difference, 1, periods)) return false;
  std::int64_t cases = 1;
  for (const auto& [symbol, period] : periods)
    if ((cases *= period) > kMostCases) return false;
  for (std::int64_t at = 0; at < cases; ++at) {
    const Dim of_case = difference.substitute([&](SymbolId symbol) {
      std::int64_t rest = at;
      for (const auto& [other, period] : periods) {
        if (other == symbol.value) return Dim::symbol(symbol) * Dim(period) + Dim(rest % period);
        rest /= period;
      }
      return Dim::symbol(symbol);
    });
    if (!(of_case == Dim(0))) return false;
  }
  return cases > 1;
}

bool Relation::holds(std::span<const std::int64_t> symbols) const {
  try {
    const std::int64_t a = left.evaluate(symbols), b = right.evaluate(symbols);
    switch (op) {
      case Operator::equal: return a == b;
      case Operator::not_equal: return a != b;
      case Operator::less: return a < b;
      case Operator::less_equal: return a <= b;
      case Operator::multiple_of: return b == -1 || (b != 0 && a % b == 0);
    }
  } catch (const Exception&) {
  }
  return false;
}

}  // namespace tenon::ir
