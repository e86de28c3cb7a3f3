// The words of the text form.
#pragma once

#include <string>
#include <string_view>

#include "core/base/error.h"

namespace tenon::ir {

enum class TokenKind : std::uint8_t { end, name, value, at_name, integer, floating, string, punctuation };

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view spelling;  // as it stands in the text
  std::string text;           // of names without sigil; of strings without quotes and escapes
  std::size_t offset = 0;
};

/// Splits text into tokens. Spaces, line ends and comments (# to the end of the line) separate and mean nothing else.
/// Tokens: names (a.b, vendor::op), %values, @names (also @"…"), numbers without sign, strings, `..`, and single characters.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  /// Throws (malformed) with line and column for what is no token.
  Token next();

  /// Throws an error that starts with line and column of a place in the text.
  [[noreturn]] void fail(std::size_t offset, const std::string& message) const;

 private:
  void skip_space();
  std::string_view take_name(bool colons);
  Token number(Token token);
  std::string quoted();
  char peek(std::size_t ahead = 0) const { return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0'; }

  std::string_view text_;
  std::size_t position_ = 0;
};

}  // namespace tenon::ir
