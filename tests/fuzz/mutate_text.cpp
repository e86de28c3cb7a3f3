#include <algorithm>
#include <string_view>

#include "fuzz/mutate.h"

namespace tenon::fuzz {
namespace {

std::size_t below(Random& random, std::size_t n) { return n == 0 ? 0 : random() % n; }

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.'; }

/// The text cut into words, spaces and single characters; together they are the text.
std::vector<std::string> pieces_of(std::string_view text) {
  std::vector<std::string> pieces;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i + 1;
    if (is_word(text[i]))
      while (end < text.size() && is_word(text[end])) ++end;
    pieces.emplace_back(text.substr(i, end - i));
    i = end;
  }
  return pieces;
}

std::string telling_word(Random& random) {
  static const std::vector<std::string> kWords{
      "graph", "return", "const", "update", "saved", "token", "on", "none", "true", "false", "inf", "nan", "nan(", "min(", "floor_div(s0, ", "mod(", "f32", "bool", "f64[",
      "c128[2]", "0", "-1", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "18446744073709551616", "0x", "0x7ff8000000000001", "1e308", "1e309",
      "1.5", "-0.0", ".", "..", "%x", "@c0", "@\"", "\"", "\\x", "[", "]", "{", "}", "(", ")", ",", ":", "=", "*", "+", "-", "#", "s0", "s0*", "constant", "index", "device2:0",
      "device200:1", "::", "graph @r () { return }", "[.]", "[1, 2]", "[1.0, 2]", "\xff", "((((((((((((((((((((((((", "- - - - - - - - - "};
  return kWords[below(random, kWords.size())];
}

}  // namespace

void mutate_text(std::string& text, const std::string& donor, Random& random) {
  std::vector<std::string> pieces = pieces_of(text);
  for (std::size_t changes = 1 + below(random, 4); changes-- > 0 && !pieces.empty();) {
    const auto at = pieces.begin() + static_cast<std::ptrdiff_t>(below(random, pieces.size()));
    switch (below(random, 9)) {
      case 0: pieces.erase(at); break;
      case 1: pieces.insert(at, std::string(*at)); break;
      case 2: std::swap(*at, pieces[below(random, pieces.size())]); break;
      case 3: *at = telling_word(random); break;
      case 4: pieces.insert(at, telling_word(random)); break;
      case 5: {
        const std::vector<std::string> others = pieces_of(donor);
        const std::size_t first = below(random, others.size()), count = below(random, others.size() - first);
        pieces.insert(at, others.begin() + static_cast<std::ptrdiff_t>(first), others.begin() + static_cast<std::ptrdiff_t>(first + std::min<std::size_t>(count, 40)));
        break;
      }
      case 6: (*at)[below(random, at->size())] = static_cast<char>(random()); break;
      case 7: pieces.erase(at, pieces.end()); break;
      default: {
        const auto last = at + static_cast<std::ptrdiff_t>(below(random, static_cast<std::size_t>(pieces.end() - at)));
        pieces.erase(at, last);
      }
    }
  }
  text.clear();
  for (const std::string& p : pieces) text += p;
}

}  // namespace tenon::fuzz
