// Runs the golden PTX: ptx_golden FOLDER [--bless] [PART_OF_A_NAME]
//
// A file is PTX for sm_80 behind the graph that it comes from, in comments at the head: what it shows, then the graph. What comes out for each
// kind of card is assembled for it.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>

#include "core/base/error.h"
#include "core/ir/parser.h"
#include "ptx_kernels.h"

namespace {

using namespace tenon;

struct PtxCase {
  std::string head;   // comments
  std::string graph;  // without them
  std::string expected;
};

PtxCase read_case(const std::filesystem::path& path) {
  std::ifstream file(path);
  PtxCase read;
  std::string line;
  bool in_head = true, in_graph = false;
  while (std::getline(file, line)) {
    (in_head ? read.head : read.expected) += line + "\n";
    in_graph = in_graph || line.starts_with("// graph");
    if (in_head && in_graph) read.graph += line.substr(std::min<std::size_t>(line.size(), 3)) + "\n";
    in_head = in_head && line != "// }";
  }
  return read;
}

/// A kind of card, and whose code it is given.
struct Card {
  const char *assembled, *code;
  bool has_tensor_cores = true, has_clusters = false, has_warpgroups = false;
};
constexpr Card kCards[] = {{"sm_75", "sm_75", false}, {"sm_80", "sm_80"}, {"sm_89", "sm_89"}, {"sm_90a", "sm_90a", true, true, true}, {"sm_120", "sm_90", true, true}};

/// LLVM numbers the calls that it has emitted in the process.
std::string without_call_numbers(const std::string& ptx) { return std::regex_replace(ptx, std::regex("callseq [0-9]+"), "callseq"); }

/// What ptxas has to say, or "".
std::string assembled(const std::string& ptx, const std::string& architecture) {
  const auto folder = std::filesystem::temp_directory_path() / ("tenon_ptx_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const auto text = folder / "kernels.ptx", said = folder / "said";
  std::ofstream(text) << ptx;
  const int failed = std::system(("'" TENON_PTXAS "' -arch=" + architecture + " -o /dev/null '" + text.string() + "' > '" + said.string() + "' 2>&1").c_str());
  std::ifstream file(said);
  const std::string words{std::istreambuf_iterator<char>(file), {}};
  std::filesystem::remove_all(folder);
  return failed ? "ptxas for " + architecture + ":\n" + words : "";
}

std::string check(const std::filesystem::path& path, bool is_blessing) {
  const PtxCase golden = read_case(path);
  // Products of float32 as tf32 where the head says so.
  const cuda::Rounding rounding{.products = golden.head.find("as tf32") != std::string::npos, .convolutions = golden.head.find("as tf32") != std::string::npos};
  const auto schedule = [&](bool products, bool clusters, bool warpgroups) {
    return ptx_test::schedule_graph(ir::parse_graph(golden.graph).value(), products, {rounding, clusters, warpgroups});
  };
  const auto scheduled = schedule(true, false, false);
  const std::string output = without_call_numbers(ptx_test::ptx_of(scheduled, "sm_80"));
  for (const Card& card : kCards) {
    const std::string code = ptx_test::ptx_of(schedule(card.has_tensor_cores, card.has_clusters, card.has_warpgroups), card.code);
    if (const std::string fault = assembled(code, card.assembled); !fault.empty()) return fault + code;
  }
  if (is_blessing) std::ofstream(path) << golden.head << output;
  else if (output != golden.expected) return "expected:\n" + golden.expected + "came out:\n" + output;
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: ptx_golden FOLDER [--bless] [PART_OF_A_NAME]\n");
    return 2;
  }
  if (!std::filesystem::exists(TENON_PTXAS)) {
    std::fprintf(stderr, "ptx_golden: there is no %s: scripts/setup installs it\n", TENON_PTXAS);
    return 1;
  }
  bool is_blessing = false;
  std::string part;
  for (int i = 2; i < argc; ++i) {
    if (std::strcmp(argv[i], "--bless") == 0) is_blessing = true;
    else part = argv[i];
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1]))
    if (entry.path().extension() == ".ptx" && entry.path().string().find(part) != std::string::npos) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  int failed = 0;
  for (const auto& path : files) {
    std::string fault;
    try {
      fault = check(path, is_blessing);
    } catch (const Exception& failure) {
      fault = failure.what();
    }
    if (fault.empty()) continue;
    ++failed;
    std::printf("FAILED %s\n%s\n", path.c_str(), fault.c_str());
  }
  std::printf("%d golden files, %d failed\n", static_cast<int>(files.size()), failed);
  return failed == 0 && !files.empty() ? 0 : 1;
}
