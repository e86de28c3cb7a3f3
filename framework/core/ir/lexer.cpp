#include "core/ir/lexer.h"

#include <algorithm>

namespace tenon::ir {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_inner(char c) { return is_start(c) || is_digit(c); }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

void Lexer::fail(std::size_t offset, const std::string& message) const {
  const std::string_view before = text_.substr(0, std::min(offset, text_.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t start = before.rfind('\n');
  const std::size_t column = before.size() - (start == std::string_view::npos ? 0 : start + 1) + 1;
  throw Exception(Code::malformed, fmt::format("line {}, column {}: {}", line, column, message));
}

void Lexer::skip_space() {
  for (;; ++position_) {
    const char c = peek();
    if (c == '#') {
      position_ = std::min(text_.find('\n', position_), text_.size());
      if (position_ == text_.size()) return;
    } else if (c != ' ' && c != '\n' && c != '\t' && c != '\r') {
      return;
    }
  }
}

std::string_view Lexer::take_name(bool colons) {
  const std::size_t start = position_;
  while (is_inner(peek()) || peek() == '.' || (colons && peek() == ':' && peek(1) == ':' && is_start(peek(2))))
    position_ += peek() == ':' ? 2 : 1;
  return text_.substr(start, position_ - start);
}

Token Lexer::next() {
  skip_space();
  Token token;
  token.offset = position_;
  const char c = peek();
  if (position_ >= text_.size()) return token;
  if (is_start(c)) {
    token.kind = TokenKind::name;
    token.text = take_name(true);
  } else if (is_digit(c)) {
    return number(std::move(token));
  } else if (c == '"') {
    token.kind = TokenKind::string;
    token.text = quoted();
  } else if ((c == '%' || c == '@') && is_start(peek(1))) {
    token.kind = c == '%' ? TokenKind::value : TokenKind::at_name;
    ++position_;
    token.text = take_name(false);
  } else if (c == '@' && peek(1) == '"') {
    token.kind = TokenKind::at_name;
    ++position_;
    token.text = quoted();
  } else {
    token.kind = TokenKind::punctuation;
    position_ += c == '.' && peek(1) == '.' ? 2 : 1;
  }
  token.spelling = text_.substr(token.offset, position_ - token.offset);
  return token;
}

/// Digits, or 0x and hexadecimal ones: an integer. With a fraction or an exponent: floating.
Token Lexer::number(Token token) {
  token.kind = TokenKind::integer;
  if (peek() == '0' && peek(1) == 'x') {
    position_ += 2;
    while (hex_digit(peek()) >= 0) ++position_;
  } else {
    while (is_digit(peek())) ++position_;
    if (peek() == '.' && peek(1) != '.') {
      token.kind = TokenKind::floating;
      ++position_;
      while (is_digit(peek())) ++position_;
    }
    const std::size_t sign = peek(1) == '+' || peek(1) == '-' ? 1 : 0;
    if ((peek() == 'e' || peek() == 'E') && is_digit(peek(1 + sign))) {
      token.kind = TokenKind::floating;
      position_ += 1 + sign;
      while (is_digit(peek())) ++position_;
    }
  }
  if (is_inner(peek())) fail(position_, fmt::format("'{}' may not follow a number", peek()));
  token.spelling = text_.substr(token.offset, position_ - token.offset);
  token.text = token.spelling;
  return token;
}

std::string Lexer::quoted() {
  const std::size_t start = position_++;
  std::string out;
  for (;; ++position_) {
    if (position_ >= text_.size() || peek() == '\n') fail(start, "this string has no end");
    const char c = peek();
    if (c == '"') break;
    if (c != '\\') {
      out += c;
      continue;
    }
    ++position_;
    switch (peek()) {
      case 'n': out += '\n'; break;
      case 't': out += '\t'; break;
      case '"':
      case '\\': out += peek(); break;
      case 'x': {
        const int high = hex_digit(peek(1)), low = high < 0 ? -1 : hex_digit(peek(2));
        if (low < 0) fail(position_, "expected two hexadecimal digits after \\x");
        out += static_cast<char>(high * 16 + low);
        position_ += 2;
        break;
      }
      default: fail(position_, "unknown escape; known are \\\" \\\\ \\n \\t \\x");
    }
  }
  ++position_;
  return out;
}

}  // namespace tenon::ir
