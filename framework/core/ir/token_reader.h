// Reads the pieces of the text form that graphs are made of: words, numbers, symbolic sizes, types.
#pragma once

#include <optional>
#include <unordered_map>

#include "core/ir/lexer.h"
#include "core/ir/type.h"

namespace tenon::ir {

/// Looks at one token at a time. `parse_…` take what they name or throw (malformed) with line, column, and what was expected.
class TokenReader {
 public:
  explicit TokenReader(std::string_view text) : lexer_(text) { advance(); }

  void advance() { token_ = lexer_.next(); }
  [[noreturn]] void unexpected(std::string_view expected) const;

  bool at(char c) const { return token_.kind == TokenKind::punctuation && token_.spelling.size() == 1 && token_.spelling[0] == c; }
  bool at_word(std::string_view word) const { return token_.kind == TokenKind::name && token_.text == word; }
  /// Whether a symbolic integer may start here.
  bool at_dim() const { return token_.kind == TokenKind::integer || token_.kind == TokenKind::name || at('-') || at('('); }

  /// Goes past a word if it is there.
  bool take(char c);
  bool take_word(std::string_view word);
  void expect(char c);
  /// The text of a token of that kind.
  std::string expect_token(TokenKind kind, std::string_view what);

  /// Calls `item` for each of a list with commas up to `close`; the opening bracket has been taken.
  template <class Item>
  void list_until(char close, Item&& item) {
    if (take(close)) return;
    do item();
    while (take(','));
    expect(close);
  }

  /// A float with its sign, or nothing if none stands here.
  std::optional<double> parse_float();
  std::int64_t parse_integer();
  /// A float or an integer.
  double parse_number();
  /// The float32 nearest to a number: by way of float64 it would be rounded twice.
  float parse_float32();
  Dim parse_dim();
  Type parse_type();

 protected:
  Lexer lexer_;
  Token token_;
  std::unordered_map<std::string, SymbolId> symbol_ids_;  // the symbols that sizes may mention

 private:
  std::optional<double> parse_unsigned_float();
  double parse_nan();
  std::uint64_t parse_unsigned(std::string_view what);
  Dim parse_product();
  Dim parse_factor();
  Dim parse_negative(std::size_t offset);
  Dim parse_symbolic();
  Dim parse_function(const std::string& name, std::size_t offset);
  Dim parse_size();
  Device parse_device();

  int parentheses_ = 0;
};

}  // namespace tenon::ir
