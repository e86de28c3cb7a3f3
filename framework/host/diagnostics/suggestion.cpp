#include "host/diagnostics/suggestion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

namespace tenon::host {
namespace {

/// Optimal string alignment distance: insertions, deletions, substitutions, swaps of neighbours.
/// (en.wikipedia.org/wiki/Damerau–Levenshtein_distance)
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

std::string folded(std::string_view word) {
  std::string result(word);
  for (char& c : result) c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

}  // namespace

std::string nearest_word(std::string_view word, std::span<const std::string> known) {
  // A word of three letters may have one wrong, one of six two, a long one three.
  std::size_t best = std::min<std::size_t>(3, (word.size() + 2) / 3) + 1;
  std::string result;
  const std::string given = folded(word.substr(0, 64));
  for (const std::string& candidate : known) {
    const std::size_t d = distance(given, folded(std::string_view(candidate).substr(0, 64)));
    if (d < best) {
      best = d;
      result = candidate;
    }
  }
  return result;
}

std::string suggestion_text(std::string_view word, std::span<const std::string> known) {
  std::string text;
  if (const std::string nearest = nearest_word(word, known); !nearest.empty()) text += fmt::format("; did you mean '{}'?", nearest);
  if (!known.empty() && known.size() <= 24) text += fmt::format("{} known: {}", text.empty() ? ";" : "", joined(known));
  return text;
}

std::string nearest_path_text(const std::string& path) {
  namespace fs = std::filesystem;
  fs::path given = fs::path(path).lexically_normal();
  if (!given.has_filename()) given = given.parent_path();
  const fs::path folder = given.has_parent_path() ? given.parent_path() : ".";
  std::error_code problem;
  if (fs::exists(given, problem)) return {};
  std::vector<std::string> beside;
  constexpr std::size_t kMostLookedAt = 4096;
  for (fs::directory_iterator entry(folder, problem), end; !problem && entry != end && beside.size() < kMostLookedAt; entry.increment(problem))
    if (entry->path().filename() != given.filename()) beside.push_back(entry->path().filename().string());  // a link to nothing
  const std::string nearest = nearest_word(given.filename().string(), beside);
  return nearest.empty() ? std::string() : fmt::format("; did you mean '{}'?", (given.has_parent_path() ? folder / nearest : fs::path(nearest)).string());
}

std::string joined(std::span<const std::string> words, char quote) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += ", ";
    text += quote ? fmt::format("{}{}{}", quote, word, quote) : word;
  }
  return text;
}

}  // namespace tenon::host
