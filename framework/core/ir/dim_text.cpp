// The text form of a symbolic integer.
#include "core/base/error.h"
#include "core/ir/dim.h"

namespace tenon::ir {
namespace {

std::string atom_text(const DimAtom& atom, const std::function<std::string(SymbolId)>& symbol_name) {
  if (atom.op == DimOp::symbol) return symbol_name(atom.symbol);
  static constexpr const char* kNames[] = {"", "floor_div", "mod", "min", "max"};
  return fmt::format("{}({}, {})", kNames[static_cast<int>(atom.op)], atom.operands[0].to_string(symbol_name),
                     atom.operands[1].to_string(symbol_name));
}

}  // namespace

std::string Dim::to_string(const std::function<std::string(SymbolId)>& symbol_name) const {
  std::string text;
  for (const DimTerm& t : terms()) {
    std::string product;
    for (const DimAtom& a : t.atoms) {
      if (!product.empty()) product += '*';
      product += atom_text(a, symbol_name);
    }
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

}  // namespace tenon::ir
