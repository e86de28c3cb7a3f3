// Every sample of the catalogue, against the judge.
#include <cstdio>
#include <cstdlib>

#include "catch.h"
#include "core/ops/catalog.h"
#include "running.h"

using namespace tenon;

namespace {

/// Runs all samples under a choice and names the failing ones.
std::vector<std::string> failures(const llvm_test::Choice& choice) {
  std::vector<std::string> failed;
  // One op alone, or each name as it runs: for finding what crashes.
  const char* only = std::getenv("TENON_TEST_OP");
  for (const ops::Op& op : ops::all_ops()) {
    if (only && op.name != only) continue;
    for (const ops::Sample& sample : ops::samples_of(op)) {
      const std::string name = op.name + "/" + sample.name;
      if (std::getenv("TENON_TEST_TRACE")) std::fprintf(stderr, "%s\n", name.c_str());
      try {
        const ir::Graph graph = ops::sample_graph(op, sample);
        const auto inputs = ops::sample_inputs(sample, 7);
        std::vector<ops::TensorView> views;
        for (const auto& input : inputs) views.push_back(input.view);
        if (auto d = llvm_test::difference(graph, views, choice, sample.tolerance)) failed.push_back(name + ": " + *d);
      } catch (const std::exception& e) {
        failed.push_back(name + " threw: " + e.what());
      }
    }
  }
  return failed;
}

void check_samples(const llvm_test::Choice& choice) {
  const auto failed = failures(choice);
  for (std::size_t i = 0; i < std::min<std::size_t>(failed.size(), 60); ++i) WARN(failed[i]);
  CHECK(failed.size() == 0);
}

}  // namespace

TEST_CASE("every sample of the catalogue agrees with the judge", "[samples]") { check_samples({}); }
TEST_CASE("every sample whose kernels take their sizes with the call agrees with the judge", "[samples]") { check_samples({.least_shared = 1}); }
