// Runs the golden files: golden_test GOLDEN_FOLDER PLUGIN_FOLDER [--bless] [PART_OF_A_PATH]
#include <cstdio>
#include <cstring>

#include "core/base/error.h"
#include "core/ir/parser.h"
#include "core/ir/printer.h"
#include "core/ir/verifier.h"
#include "core/rewrite/on_device.h"
#include "equivalence.h"
#include "golden_case.h"
#include "pass_plugins.h"

namespace {

using namespace tenon;

/// The same graph on a device must become the same, there; gives what is wrong, or "".
std::string check_on_device(const ir::Graph& before, const ir::Graph& after, const golden::GoldenCase& golden, const golden::PassPlugins& plugins) {
  const ir::Device device{9, 1};
  if (!before.constants().empty() || !after.constants().empty()) return {};  // whose copies a pass does not know
  const auto moved = rewrite::on_device(before, device), expected = rewrite::on_device(after, device);
  if (!moved || !expected) return {};
  const golden::RewrittenGraph rewritten = plugins.run(moved->clone(), golden.passes);
  if (const auto fault = ir::verify_graph(rewritten.graph)) return "the result on a device is no graph: " + fault->message;
  const std::string got = ir::print_graph(rewritten.graph), want = ir::print_graph(*expected);
  return got == want ? "" : "expected on a device:\n" + want + "came out:\n" + got;
}

/// Runs one file; gives what is wrong, or "".
std::string check(const golden::GoldenCase& golden, const golden::PassPlugins& plugins, bool is_blessing) {
  const ir::Graph before = ir::parse_graph(golden.input).value();
  const golden::RewrittenGraph rewritten = plugins.run(before.clone(), golden.passes);
  const ir::Graph& after = rewritten.graph;
  if (const auto fault = ir::verify_graph(after)) return "the result is no graph: " + fault->message;
  if (golden.is_evaluated)
    if (const auto difference = golden::first_difference(before, after)) return "the values changed: " + *difference;
  const std::string output = ir::print_graph(after);
  if (is_blessing) golden::bless(golden, output);
  else if (output != golden.expected) return "expected:\n" + golden.expected + "came out:\n" + output;
  return check_on_device(before, after, golden, plugins);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: golden_test GOLDEN_FOLDER PLUGIN_FOLDER [--bless] [PART_OF_A_PATH]\n");
    return 2;
  }
  bool is_blessing = false;
  std::string part;
  for (int i = 3; i < argc; ++i) {
    if (std::strcmp(argv[i], "--bless") == 0) is_blessing = true;
    else part = argv[i];
  }
  const golden::PassPlugins plugins(argv[2]);
  int run = 0, failed = 0;
  for (const auto& path : golden::golden_files(argv[1])) {
    if (path.string().find(part) == std::string::npos) continue;
    ++run;
    std::string fault;
    try {
      fault = check(golden::read_golden(path), plugins, is_blessing);
    } catch (const Exception& failure) {
      fault = failure.what();
    }
    if (fault.empty()) continue;
    ++failed;
    std::printf("FAILED %s\n%s\n", path.c_str(), fault.c_str());
  }
  std::printf("%d golden files, %d failed\n", run, failed);
  return failed == 0 && run > 0 ? 0 : 1;
}
