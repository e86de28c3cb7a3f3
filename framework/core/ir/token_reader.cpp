#include "core/ir/token_reader.h"

#include <locale.h>
#include <stdlib.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/abi/graph_buffer.h"

namespace tenon::ir {
namespace {

constexpr int kMaxParentheses = 100;

/// Numbers do not depend on the user's locale. (Not std::from_chars: libc++ has none for floats before version 20.)
locale_t c_locale() {
  static const locale_t locale = newlocale(LC_ALL_MASK, "C", nullptr);
  return locale;
}

}  // namespace

void TokenReader::unexpected(std::string_view expected) const {
  const std::string found = token_.kind == TokenKind::end ? "the end of the text" : fmt::format("'{}'", token_.spelling.substr(0, 40));
  lexer_.fail(token_.offset, fmt::format("expected {}, found {}", expected, found));
}

bool TokenReader::take(char c) {
  const bool there = at(c);
  if (there) advance();
  return there;
}

bool TokenReader::take_word(std::string_view word) {
  const bool there = at_word(word);
  if (there) advance();
  return there;
}

void TokenReader::expect(char c) {
  if (!take(c)) unexpected(fmt::format("'{}'", c));
}

std::string TokenReader::expect_token(TokenKind kind, std::string_view what) {
  if (token_.kind != kind) unexpected(what);
  std::string text = std::move(token_.text);
  advance();
  return text;
}

std::optional<double> TokenReader::parse_float() {
  if (!at('-')) return parse_unsigned_float();
  // A sign is part of a float or of an integer expression: look one token ahead.
  const Lexer saved_lexer = lexer_;
  const Token saved_token = token_;
  advance();
  if (const std::optional<double> d = parse_unsigned_float()) return -*d;
  lexer_ = saved_lexer;
  token_ = saved_token;
  return std::nullopt;
}

std::optional<double> TokenReader::parse_unsigned_float() {
  if (take_word("inf")) return std::numeric_limits<double>::infinity();
  if (take_word("nan")) return parse_nan();
  if (token_.kind != TokenKind::floating) return std::nullopt;
  const double value = strtod_l(token_.text.c_str(), nullptr, c_locale());
  if (std::isinf(value)) lexer_.fail(token_.offset, fmt::format("{} is outside the range of float64", token_.spelling));
  advance();
  return value;
}

double TokenReader::parse_nan() {
  if (!take('(')) return std::bit_cast<double>(0x7ff8000000000000ull);
  const std::size_t offset = token_.offset;
  const auto value = std::bit_cast<double>(parse_unsigned("the bits of a NaN"));
  if (value == value) lexer_.fail(offset, "these are not the bits of a NaN");
  expect(')');
  return value;
}

std::uint64_t TokenReader::parse_unsigned(std::string_view what) {
  if (token_.kind != TokenKind::integer) unexpected(what);
  std::string_view s = token_.spelling;
  const int base = s.substr(0, 2) == "0x" ? 16 : 10;
  if (base == 16) s.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, problem] = std::from_chars(s.data(), s.data() + s.size(), value, base);
  if (problem == std::errc::result_out_of_range) lexer_.fail(token_.offset, fmt::format("{} does not fit in 64 bits", token_.spelling));
  if (problem != std::errc() || end != s.data() + s.size()) unexpected(what);
  advance();
  return value;
}

std::int64_t TokenReader::parse_integer() {
  const std::size_t offset = token_.offset;
  const bool negative = take('-');
  const std::uint64_t magnitude = parse_unsigned("an integer");
  if (magnitude > static_cast<std::uint64_t>(INT64_MAX) + negative) lexer_.fail(offset, "this integer does not fit in 64 bits");
  return static_cast<std::int64_t>(negative ? 0 - magnitude : magnitude);
}

double TokenReader::parse_number() {
  if (const std::optional<double> d = parse_float()) return *d;
  return static_cast<double>(parse_integer());
}

float TokenReader::parse_float32() {
  const bool negative = take('-');
  if (token_.kind != TokenKind::floating) return static_cast<float>(negative ? -parse_number() : parse_number());
  const float value = strtof_l(token_.text.c_str(), nullptr, c_locale());
  if (std::isinf(value)) lexer_.fail(token_.offset, fmt::format("{} is outside the range of float32", token_.spelling));
  advance();
  return negative ? -value : value;
}


Dim TokenReader::parse_dim() {
  const std::size_t offset = token_.offset;
  if (++parentheses_ > kMaxParentheses) lexer_.fail(offset, "parentheses are nested too deeply");
  try {
    Dim sum = parse_product();
    for (;;) {
      if (take('+')) sum = sum + parse_product();
      else if (take('-')) sum = sum - parse_product();
      else break;
    }
    --parentheses_;
    return sum;
  } catch (const Exception& e) {
    if (e.code() == Code::malformed) throw;
    lexer_.fail(offset, e.what());
  }
}

Dim TokenReader::parse_product() {
  Dim product = parse_factor();
  while (take('*')) product = product * parse_factor();
  return product;
}

Dim TokenReader::parse_factor() {
  if (token_.kind == TokenKind::integer) return parse_integer();
  if (at('-')) {
    const std::size_t offset = token_.offset;
    advance();
    if (token_.kind == TokenKind::integer) return parse_negative(offset);
    if (++parentheses_ > kMaxParentheses) lexer_.fail(offset, "signs are nested too deeply");
    const Dim factor = parse_factor();
    --parentheses_;
    return -factor;
  }
  if (take('(')) {
    Dim inner = parse_dim();
    expect(')');
    return inner;
  }
  if (token_.kind != TokenKind::name) unexpected("an integer or a symbol");
  return parse_symbolic();
}

Dim TokenReader::parse_negative(std::size_t offset) {
  const std::uint64_t magnitude = parse_unsigned("an integer");
  if (magnitude > static_cast<std::uint64_t>(INT64_MAX) + 1) lexer_.fail(offset, "this integer does not fit in 64 bits");
  return static_cast<std::int64_t>(0 - magnitude);
}

Dim TokenReader::parse_symbolic() {
  const std::size_t offset = token_.offset;
  const std::string name = expect_token(TokenKind::name, "a symbol");
  if (at('(')) return parse_function(name, offset);
  const auto found = symbol_ids_.find(name);
  if (found == symbol_ids_.end()) lexer_.fail(offset, fmt::format("there is no symbol {}", name));
  return Dim::symbol(found->second);
}

Dim TokenReader::parse_function(const std::string& name, std::size_t offset) {
  expect('(');
  const Dim a = parse_dim();
  expect(',');
  const Dim b = parse_dim();
  expect(')');
  if (name == "floor_div") return floor_div(a, b);
  if (name == "mod") return mod(a, b);
  if (name == "min") return min(a, b);
  if (name == "max") return max(a, b);
  lexer_.fail(offset, fmt::format("'{}' is no function of sizes; floor_div, mod, min and max are", name));
}


Type TokenReader::parse_type() {
  if (take_word("token")) return Type::token();
  const std::optional<DType> dtype = token_.kind == TokenKind::name ? dtype_named(token_.text) : std::nullopt;
  if (!dtype) unexpected("a type, like f32[2, 3]");
  advance();
  const std::size_t offset = token_.offset;
  expect('[');
  Type type = Type::tensor(*dtype, {});
  list_until(']', [&] { type.shape.push_back(parse_size()); });
  if (type.rank() > TENON_MAX_RANK) lexer_.fail(offset, fmt::format("{} dimensions are more than {}", type.rank(), TENON_MAX_RANK));
  if (!bytes_are_countable(type.shape, size_of(type.dtype))) lexer_.fail(offset, "the bytes of this tensor cannot be counted in 63 bits");
  if (at('{')) {
    const std::size_t strides = token_.offset;
    advance();
    type.strides.emplace();
    list_until('}', [&] { type.strides->push_back(parse_dim()); });
    if (type.strides->size() != type.rank()) lexer_.fail(strides, fmt::format("{} strides for {} dimensions", type.strides->size(), type.rank()));
  }
  if (take_word("on")) type.device = parse_device();
  return type;
}

Dim TokenReader::parse_size() {
  const std::size_t offset = token_.offset;
  Dim d = parse_dim();
  if (d.is_constant() && d.constant() < 0) lexer_.fail(offset, fmt::format("a dimension cannot be {}", d.constant()));
  return d;
}

Device TokenReader::parse_device() {
  const std::size_t offset = token_.offset;
  const std::string name = expect_token(TokenKind::name, "a device, like device9:0");
  const std::optional<std::uint8_t> kind = device_kind_named(name);
  if (!kind) lexer_.fail(offset, no_device(name));
  Device device{*kind, 0};
  if (!take(':')) return device;
  const std::int64_t index = parse_integer();
  if (index < 0 || index > INT32_MAX) lexer_.fail(offset, "this is no number of a device");
  device.index = static_cast<std::int32_t>(index);
  return device;
}

}  // namespace tenon::ir
