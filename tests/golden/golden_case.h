// A golden file: a graph, the passes to run, and the graph that must come out.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tenon::golden {

/// The parts of a file:
///
///     # What it shows.
///     # passes: simplify
///     graph @main (...) { ... }
///     # ---- becomes
///     graph @main (...) { ... }
///
/// `# not evaluated: <why>` switches the comparison of values off.
struct GoldenCase {
  std::filesystem::path path;
  std::vector<std::string> passes;
  std::string input;
  std::string expected;
  bool is_evaluated = true;
};

/// Reads a file. Throws (malformed) when it names no passes.
GoldenCase read_golden(const std::filesystem::path& path);
/// Writes what came out as what is expected.
void bless(const GoldenCase& golden, const std::string& output);

/// All *.tir files below a folder, sorted.
std::vector<std::filesystem::path> golden_files(const std::filesystem::path& folder);

}  // namespace tenon::golden
