// Symbolic sizes in a form that is quick to evaluate at every call.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/ir/dim.h"

namespace tenon::host {

/// A dimension: most are constants or plain symbols, and cost a load.
class SizeExpression {
 public:
  explicit SizeExpression(const ir::Dim& dim) : dim_(dim), symbol_(dim.as_symbol()), constant_(dim.is_constant() ? dim.constant() : 0) {}

  std::int64_t evaluate(std::span<const std::int64_t> symbols) const {
    if (symbol_) return symbols[symbol_.value];
    return dim_.is_constant() ? constant_ : dim_.evaluate(symbols);
  }
  bool is_constant() const { return dim_.is_constant(); }
  /// The symbol when the size is exactly one.
  SymbolId symbol() const { return symbol_; }
  const ir::Dim& dim() const { return dim_; }

 private:
  ir::Dim dim_;
  SymbolId symbol_;
  std::int64_t constant_;
};

using SizeExpressions = std::vector<SizeExpression>;

inline SizeExpressions size_expressions(std::span<const ir::Dim> dims) {
  SizeExpressions sizes;
  for (const ir::Dim& dim : dims) sizes.emplace_back(dim);
  return sizes;
}

}  // namespace tenon::host
