// Index expressions of fused loop nests: simplification with the ranges of the loop variables, and affine analysis.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/ir/dim.h"
#include "core/ir/graph.h"

namespace tenon::codegen {

using ir::Dim;

/// Index expressions are `Dim`s over three ranges of symbols: the symbols of the graph, then loop variables, then values that
/// operations of the kernel compute (an index that was loaded).
inline constexpr std::uint32_t kFirstLoop = 1u << 20;
inline constexpr std::uint32_t kFirstValue = 1u << 24;

inline bool is_graph_symbol(SymbolId s) { return s.value < kFirstLoop; }
inline bool is_loop(SymbolId s) { return s.value >= kFirstLoop && s.value < kFirstValue; }
inline bool is_value(SymbolId s) { return s.value >= kFirstValue; }
inline SymbolId value_symbol(std::uint32_t operation) { return SymbolId(kFirstValue + operation); }

/// Gives the expression of one term, or of one atom.
Dim term_of(const ir::DimTerm& term);
Dim atom_of(const ir::DimAtom& atom);

/// True when the symbol occurs anywhere in the expression.
bool mentions(const Dim& dim, SymbolId symbol);
/// True when some value that operations compute occurs in it.
bool is_computed(const Dim& dim);

/// Writes `dim` as coefficient * symbol + rest with both free of the symbol; nothing when it is not affine in the symbol.
struct Affine {
  Dim coefficient;
  Dim rest;
};
std::optional<Affine> split_affine(const Dim& dim, SymbolId symbol);
/// True where the place moves by one element, or not at all, along the loop.
bool is_contiguous_or_fixed(const Dim& place, SymbolId loop);

/// Replaces one symbol by an expression.
Dim replace_symbol(const Dim& dim, SymbolId symbol, const Dim& by);

/// Simplifies with what is known of the ranges of symbols. Every loop variable is in [0, extent).
class IndexAlgebra {
 public:
  IndexAlgebra() = default;
  explicit IndexAlgebra(std::span<const ir::SymbolInfo> symbols) : symbols_(symbols.begin(), symbols.end()) {}

  /// Takes so many symbols after those of the graph, of which nothing is known.
  void add_symbols(std::size_t count) { symbols_.resize(symbols_.size() + count); }
  /// Makes a loop variable.
  SymbolId new_loop(Dim extent);
  /// Takes a loop variable that another algebra made.
  void add_loop(SymbolId loop, Dim extent);
  const Dim& extent(SymbolId loop) const { return extents_[loop.value - kFirstLoop]; }
  void set_extent(SymbolId loop, Dim extent) { extents_[loop.value - kFirstLoop] = std::move(extent); }

  /// Quotient and remainder (floor), simplified where the ranges allow: (4*i + j) / 4 = i for j in [0, 4).
  Dim floor_div(const Dim& a, const Dim& b) const;
  Dim mod(const Dim& a, const Dim& b) const;
  /// Uses k * floor_div(x, k) + mod(x, k) = x.
  Dim simplify(Dim sum) const;
  /// Replaces a symbol and simplifies every quotient, remainder and sum anew.
  Dim substitute(const Dim& dim, SymbolId symbol, const Dim& by) const;

  /// True when a < b (a <= b) holds for all values of all symbols. False when that cannot be shown.
  bool always_less(const Dim& a, const Dim& b) const { return always_less_equal(a + Dim(1), b); }
  bool always_less_equal(const Dim& a, const Dim& b) const;
  /// The number of iterations that a cost model may assume. One plan serves all sizes, and what it costs is paid at the large ones: a symbol
  /// counts as its hint, rounded up to a power of two, but at least as kAssumedSize.
  double estimate(const Dim& dim) const;
  /// The same of a step through memory, which may be negative.
  double estimated_step(const Dim& step) const {
    const double forward = estimate(step);
    return forward > 0 ? forward : -estimate(-step);
  }

 private:
  static constexpr std::int64_t kAssumedSize = 512;
  double estimate(SymbolId symbol) const;
  std::optional<Dim> join_division(const Dim& sum) const;
  struct Split {
    Dim quotient, rest;
  };
  Split split_multiple(const Dim& a, const Dim& b) const;
  bool in_range(const Dim& value, const Dim& limit) const;
  std::optional<Dim> bound(const Dim& dim, bool upper) const;
  std::optional<Dim> bound_atom(const ir::DimAtom& atom, bool upper) const;
  std::optional<Dim> bound_term(const ir::DimTerm& term, bool upper) const;
  bool non_negative(const Dim& over_graph_symbols) const;
  Dim rebuild(const Dim& dim, SymbolId symbol, const Dim& by) const;
  Dim rebuild_atom(const ir::DimAtom& atom, SymbolId symbol, const Dim& by) const;

  std::vector<ir::SymbolInfo> symbols_;
  std::vector<Dim> extents_;
};

}  // namespace tenon::codegen
