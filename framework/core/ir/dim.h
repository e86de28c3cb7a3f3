// A symbolic integer: the size of a dimension, a stride, an integer attribute.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/ids.h"

namespace tenon::ir {

struct DimTerm;
struct DimAtom;
struct DimTerms;

/// An integer expression over the symbols of a graph, immutable and cheap to copy; a constant holds no memory.
/// Expressions are kept as a sum of products (constant + sum of coefficient * product of atoms) in a fixed order, so equal
/// polynomials compare equal. An atom is a symbol or one of floor_div, mod, min, max of two expressions.
/// Building an expression throws (invalid_argument) when a coefficient overflows or when it becomes larger than
/// TENON_MAX_EXPRESSION_SIZE leaves and operations.
class Dim {
 public:
  Dim() = default;
  Dim(std::int64_t value) : constant_(value) {}
  Dim(const Dim& other) : constant_(other.constant_), terms_(other.terms_) {
    if (terms_) retain(terms_);
  }
  Dim(Dim&& other) noexcept : constant_(std::exchange(other.constant_, 0)), terms_(std::exchange(other.terms_, nullptr)) {}
  Dim& operator=(Dim other) noexcept {
    std::swap(constant_, other.constant_);
    std::swap(terms_, other.terms_);
    return *this;
  }
  ~Dim() {
    if (terms_) release(terms_);
  }
  static Dim symbol(SymbolId id);

  bool is_constant() const { return !terms_; }
  /// The value of a constant. Throws (internal) for an expression.
  std::int64_t constant() const;
  /// The symbol when the expression is exactly one symbol, else none.
  SymbolId as_symbol() const;

  /// The constant summand, and the other summands (empty for a constant).
  std::int64_t offset() const { return constant_; }
  std::span<const DimTerm> terms() const;

  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);
  Dim operator-() const { return Dim(0) - *this; }
  friend bool operator==(const Dim& a, const Dim& b);

  /// Python's floor division and modulo. A constant divisor of 0 throws (invalid_argument). What a symbolic divisor divides exactly
  /// is simplified (s0*s1 by s1 is s0), so that a divisor that turns out to be 0 is then not noticed.
  friend Dim floor_div(const Dim& a, const Dim& b);
  friend Dim mod(const Dim& a, const Dim& b);
  friend Dim min(const Dim& a, const Dim& b);
  friend Dim max(const Dim& a, const Dim& b);

  /// Computes the value for the given value of each symbol, indexed by SymbolId. Overflow and division by zero throw.
  std::int64_t evaluate(std::span<const std::int64_t> symbols) const;
  /// Replaces each symbol by the expression that `replacement` gives for it.
  Dim substitute(const std::function<Dim(SymbolId)>& replacement) const;
  /// Calls `visit` for each occurrence of a symbol.
  void for_each_symbol(const std::function<void(SymbolId)>& visit) const;

  /// Text form, with `symbol_name` naming the symbols: "s0*4 + 1", "floor_div(s0, 2)".
  std::string to_string(const std::function<std::string(SymbolId)>& symbol_name) const;

  std::size_t hash() const;
  /// A fixed total order on expressions, for sorting.
  static int compare(const Dim& a, const Dim& b);

 private:
  friend struct DimArithmetic;
  static void retain(const DimTerms* terms);
  static void release(const DimTerms* terms);

  std::int64_t constant_ = 0;
  const DimTerms* terms_ = nullptr;  // owned together with other expressions; no std::shared_ptr, as a graph holds so many that the size counts
};

enum class DimOp : std::uint8_t { symbol, floor_div, mod, min, max };

struct DimAtom {
  DimOp op = DimOp::symbol;
  SymbolId symbol;          // for symbol
  std::vector<Dim> operands;  // two for the others

  static int compare(const DimAtom& a, const DimAtom& b);
};

/// coefficient * product of atoms; the atoms are sorted and there is at least one.
struct DimTerm {
  std::int64_t coefficient = 1;
  std::vector<DimAtom> atoms;
};

/// The terms of an expression, with what is computed once.
struct DimTerms {
  std::vector<DimTerm> terms;
  std::size_t size = 0;  // leaves and operations, without the constant summand
  std::size_t hash = 0;
  mutable std::atomic<std::uint32_t> owners = 1;
};

using Shape = std::vector<Dim>;

/// The product of all dimensions: the number of elements.
Dim product(std::span<const Dim> dims);
/// Whether elements of that many bytes can be counted in 63 bits, as far as the constant dimensions say; a dimension of 0 counts as 1.
bool bytes_are_countable(std::span<const Dim> dims, std::size_t element_bytes);
/// Row-major strides, in elements, of a shape. A dimension of size 0 counts as 1, as in ATen.
Shape row_major_strides(std::span<const Dim> shape);
/// Those of a shape of at least two dimensions whose second one, the channels, lies closest together.
Shape channels_last_strides(std::span<const Dim> shape);

}  // namespace tenon::ir
