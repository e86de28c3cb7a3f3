#include "python/recording/opaque/size_fit.h"

#include <algorithm>
#include <numeric>

#include "python/objects/graph_break.h"

namespace tenon::python {
namespace {

constexpr std::int64_t kMostFactor = 8, kMostDivisor = 4096, kMostDivisorsTried = 64;

std::optional<ir::Dim> more_than(const ir::Dim& dim, const SizeSamples& samples) {
  const auto rest = [&](const SizeSamples::Sample& sample) { return sample.size - dim.evaluate(sample.symbols); };
  const std::int64_t more = rest(samples.all.front());
  return std::ranges::all_of(samples.all, [&](const auto& sample) { return rest(sample) == more; }) ? std::optional(dim + ir::Dim(more)) : std::nullopt;
}

/// The only symbol of an expression; none where it has none, or several.
SymbolId symbol_of(const ir::Dim& dim) {
  SymbolId only;
  bool several = false;
  dim.for_each_symbol([&](SymbolId s) {
    several |= only && only.value != s.value;
    only = s;
  });
  return several ? SymbolId() : only;
}

/// floor((factor * candidate + shift) / divisor), where `least` <= shift <= `most`.
struct Quotient {
  ir::Dim candidate;
  std::int64_t factor, divisor, least, most;

  std::int64_t numerator(const std::vector<std::int64_t>& symbols) const { return factor * candidate.evaluate(symbols); }
  std::int64_t size(const std::vector<std::int64_t>& symbols, std::int64_t shift) const { return floor_div(ir::Dim(numerator(symbols) + shift), ir::Dim(divisor)).constant(); }
  bool allows(const SizeSamples::Sample& sample) {
    const std::int64_t from = divisor * sample.size - numerator(sample.symbols);
    least = std::max(least, from);
    most = std::min(most, from + divisor - 1);
    return least <= most;
  }
};

/// Values of the symbols for which the shifts that are left give different sizes; nothing where they never do.
std::optional<std::vector<std::int64_t>> telling(const Quotient& quotient, const std::vector<std::int64_t>& present, SymbolId symbol) {
  for (const std::int64_t other : {(quotient.least + quotient.most + 1) / 2, quotient.most}) {
    std::vector<std::int64_t> symbols = present;
    for (std::int64_t step = 0; step <= quotient.divisor; ++step, ++symbols[symbol.value])
      if (quotient.size(symbols, quotient.least) != quotient.size(symbols, other)) return symbols;
  }
  return std::nullopt;
}

std::optional<ir::Dim> settled(Quotient quotient, SymbolId symbol, SizeSamples& samples) {
  for (SizeSamples::Sample& sample : samples.all)
    if (!quotient.allows(sample)) return std::nullopt;
  while (quotient.least < quotient.most) {
    const auto next = telling(quotient, samples.all.front().symbols, symbol);
    if (!next) break;
    const auto size = samples.size_for(*next);
    if (!size) return std::nullopt;
    samples.all.push_back({*next, *size});
    if (!quotient.allows(samples.all.back())) return std::nullopt;
  }
  return floor_div(quotient.candidate * ir::Dim(quotient.factor) + ir::Dim(quotient.least), ir::Dim(quotient.divisor));
}

}  // namespace

std::optional<ir::Dim> as_sum(std::span<const ir::Dim> candidates, const SizeSamples& samples) {
  if (more_than(ir::Dim(0), samples)) return ir::Dim(samples.all.front().size);
  std::optional<ir::Dim> found;
  for (const ir::Dim& candidate : candidates) {
    const auto sum = more_than(candidate, samples);
    if (sum && *sum == candidate) return sum;
    if (sum && !found) found = sum;
  }
  return found;
}

std::optional<ir::Dim> as_quotient(std::span<const ir::Dim> candidates, SizeSamples& samples) {
  for (const ir::Dim& candidate : candidates) {
    const SymbolId symbol = symbol_of(candidate);
    if (!symbol) continue;
    const auto of = [&](const SizeSamples::Sample& sample) { return candidate.evaluate(sample.symbols); };
    const auto [low, high] = std::ranges::minmax_element(samples.all, {}, of);
    const std::int64_t run = of(*high) - of(*low), rise = high->size - low->size;
    if (run <= 0 || rise <= 0) continue;
    for (std::int64_t factor = 1; factor <= kMostFactor; ++factor) {
      const std::int64_t first = std::max<std::int64_t>(1, factor * run / (rise + 1)), last = std::min(kMostDivisor, rise > 1 ? factor * run / (rise - 1) + 1 : kMostDivisor);
      for (std::int64_t divisor = first; divisor <= std::min(last, first + kMostDivisorsTried); ++divisor)
        if (std::gcd(factor, divisor) == 1)
          if (auto size = settled({candidate, factor, divisor, INT64_MIN, INT64_MAX}, symbol, samples)) return size;
    }
  }
  return std::nullopt;
}

}  // namespace tenon::python
