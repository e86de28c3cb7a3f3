#include "core/ir/names.h"

#include <algorithm>
#include <array>

#include "core/base/dtype.h"

namespace tenon::ir {
namespace {

// Not <cctype>: names do not depend on the locale.
bool starts_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool continues_name(char c) { return starts_name(c) || (c >= '0' && c <= '9') || c == '.'; }

}  // namespace

bool is_name(std::string_view text) {
  return !text.empty() && starts_name(text[0]) && std::all_of(text.begin(), text.end(), continues_name);
}

bool is_op_name(std::string_view text) {
  for (std::size_t colons; (colons = text.find("::")) != std::string_view::npos; text.remove_prefix(colons + 2))
    if (!is_name(text.substr(0, colons))) return false;
  return is_name(text);
}

bool is_reserved(std::string_view text) {
  static constexpr std::array<std::string_view, 11> kWords{"none", "true", "false", "inf", "nan", "token", "on", "floor_div", "mod", "min", "max"};
  return dtype_named(text) || std::find(kWords.begin(), kWords.end(), text) != kWords.end();
}

std::string as_name(std::string_view wish) {
  std::string name;
  name.reserve(wish.size() + 1);
  if (wish.empty() || !(starts_name(wish[0]) || !continues_name(wish[0]))) name += 'v';
  for (char c : wish) name += continues_name(c) ? c : '_';
  return name;
}

}  // namespace tenon::ir
