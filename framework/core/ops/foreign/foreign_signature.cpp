#include "core/ops/foreign/foreign_signature.h"

#include <charconv>
#include <locale>
#include <sstream>

namespace tenon::ops {
namespace {

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

/// What stands between the first parenthesis and its partner.
std::string_view inside(std::string_view s) {
  const std::size_t open = s.find('(');
  std::size_t close = open;
  for (int depth = 0; close < s.size(); ++close) {
    if (s[close] == '(') ++depth;
    if (s[close] == ')' && --depth == 0) break;
  }
  TENON_CHECK(open != std::string_view::npos && close < s.size(), "a signature without parentheses: {}", s);
  return s.substr(open + 1, close - open - 1);
}

/// The parts between commas that stand in no parentheses.
std::vector<std::string_view> parts_of(std::string_view s) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i <= s.size(); ++i) {
    if (i < s.size() && (s[i] == '(' || s[i] == '[')) ++depth;
    if (i < s.size() && (s[i] == ')' || s[i] == ']')) --depth;
    if (i < s.size() && (s[i] != ',' || depth)) continue;
    if (const auto part = trimmed(s.substr(start, i - start)); !part.empty()) parts.push_back(part);
    start = i + 1;
  }
  return parts;
}

constexpr std::string_view kLeftOut = "...";

/// A default value: None, True, False, a number, a quoted word, (), or ... for none that can be given.
ForeignArgument literal(std::string_view s) {
  if (s == "None" || s == kLeftOut) return {};
  if (s == "True" || s == "False") return {s == "True"};
  if (s == "()") return {ForeignList{}};
  if (s.front() == '\'') return {std::string(s.substr(1, s.size() - 2))};
  std::int64_t integer = 0;
  if (const auto [end, code] = std::from_chars(s.data(), s.data() + s.size(), integer); code == std::errc() && end == s.data() + s.size())
    return {ir::Dim(integer)};
  std::istringstream text{std::string(s)};  // libc++ has no std::from_chars for floats before version 20
  text.imbue(std::locale::classic());
  double number = 0;
  TENON_CHECK(text >> number && text.eof(), "'{}' is no default value", s);
  return {number};
}

std::optional<ForeignArgument> split_default(std::string_view& part) {
  const std::size_t equals = part.find('=');
  if (equals == std::string_view::npos) return {};
  const std::string_view text = trimmed(part.substr(equals + 1));
  part = trimmed(part.substr(0, equals));
  return literal(text);
}

}  // namespace

std::vector<SchemaParameter> parse_schema(std::string_view schema) {
  std::vector<SchemaParameter> parameters;
  bool keyword_only = false;
  for (std::string_view part : parts_of(inside(schema))) {
    if (part == "*") {
      keyword_only = true;
      continue;
    }
    SchemaParameter p{.type = {}, .name = {}, .keyword_only = keyword_only, .otherwise = split_default(part)};
    const std::size_t space = part.rfind(' ');
    TENON_CHECK(space != std::string_view::npos, "'{}' in the schema {} has no type", part, schema);
    p.type = trimmed(part.substr(0, space));
    p.name = part.substr(space + 1);
    if (p.type.back() == '?') {
      p.optional = true;
      p.type.pop_back();
    }
    parameters.push_back(std::move(p));
  }
  return parameters;
}

std::vector<ForeignParameter> parse_signature(std::string_view signature, std::string_view schema) {
  std::vector<ForeignParameter> parameters;
  if (signature.empty()) {
    for (SchemaParameter& p : parse_schema(schema)) {
      if (!p.otherwise && p.optional) p.otherwise = ForeignArgument{};
      parameters.push_back({p.name, p.name, false, p.keyword_only, std::move(p.otherwise)});
    }
    return parameters;
  }
  bool keyword_only = false;
  for (std::string_view part : parts_of(inside(signature))) {
    if (part == "*" || part == "/") {
      keyword_only |= part == "*";
      continue;
    }
    const bool may_be_left_out = part.ends_with(kLeftOut);
    ForeignParameter p{.name = {}, .target = {}, .keyword_only = keyword_only, .otherwise = split_default(part), .may_be_left_out = may_be_left_out};
    if (part.front() == '*') {
      p.variadic = keyword_only = true;
      part.remove_prefix(1);
    }
    const std::size_t arrow = part.find("->");
    p.name = trimmed(part.substr(0, arrow));
    p.target = arrow == std::string_view::npos ? p.name : std::string(trimmed(part.substr(arrow + 2)));
    parameters.push_back(std::move(p));
  }
  return parameters;
}

}  // namespace tenon::ops
