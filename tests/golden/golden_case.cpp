#include "golden_case.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "core/base/error.h"

namespace tenon::golden {
namespace {

constexpr std::string_view kSeparator = "# ---- becomes\n";
constexpr std::string_view kPasses = "# passes:";

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> named_passes(const std::string& text) {
  const auto at = text.find(kPasses);
  if (at == std::string::npos) return {};
  std::istringstream line(text.substr(at + kPasses.size(), text.find('\n', at) - at - kPasses.size()));
  return {std::istream_iterator<std::string>(line), {}};
}

}  // namespace

GoldenCase read_golden(const std::filesystem::path& path) {
  const std::string text = contents(path);
  GoldenCase golden;
  golden.path = path;
  const auto separator = text.find(kSeparator);
  golden.input = text.substr(0, separator);
  if (separator != std::string::npos) golden.expected = text.substr(separator + kSeparator.size());
  golden.passes = named_passes(golden.input);
  golden.is_evaluated = golden.input.find("# not evaluated:") == std::string::npos;
  if (golden.passes.empty()) throw Exception(error(Code::malformed, "{}: no line '# passes: ...'", path.string()));
  return golden;
}

void bless(const GoldenCase& golden, const std::string& output) {
  std::ofstream(golden.path) << golden.input << kSeparator << output;
}

std::vector<std::filesystem::path> golden_files(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".tir") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace tenon::golden
