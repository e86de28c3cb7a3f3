// Kernels that start with quick code, which better code replaces from the background.
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <future>

#include "catch.h"
#include "compile/background.h"
#include "compile/machine.h"
#include "core/ir/parser.h"
#include "unit/llvm/running.h"

using namespace tenon;
using llvm_test::Store;

namespace {

constexpr const char* kStagedGraph = R"(graph @main (%x: f32[37, 150]) {
  %e: f32[37, 150] = exp(%x)
  %s: f32[37] = sum(%e) {dim = [1], keepdim = false}
  %m: f32[150] = amax(%x) {dim = [0], keepdim = false}
  %t: f32[150, 37] = permute(%x) {dims = [1, 0]}
  %i: f32[150, 37] = sin(%t)
  return %s, %m, %i
})";

ir::Graph graph() { return ir::parse_graph(kStagedGraph).value(); }

std::unique_ptr<llvm_backend::Program> compile_in(llvm_backend::KernelCache& cache, bool swap) {
  llvm_backend::ProgramOptions options;
  options.swap_tiers = swap;
  return std::make_unique<llvm_backend::Program>(llvm_test::services(), cache, graph(), options);
}

/// A program of a cache that knows nothing.
std::unique_ptr<llvm_backend::Program> compile_anew(bool swap) { return compile_in(llvm_test::fresh_cache(llvm_backend::detect_machine()), swap); }

std::vector<ops::HostTensor> results(llvm_backend::Program& program) {
  const auto x = llvm_test::random_tensor(DType::f32, {37, 150}, 7);
  const ops::TensorView inputs[] = {x.view()};
  return llvm_test::run(program, graph(), inputs);
}

bool same_results(const std::vector<ops::HostTensor>& a, const std::vector<ops::HostTensor>& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::memcmp(a[i].data(), b[i].data(), a[i].byte_count()) != 0) return false;
  return a.size() == b.size();
}

/// How many kernels' places in the store are in quick code: the functions' names say so.
std::size_t quick_places(const Store& store) {
  std::size_t count = 0;
  for (const auto& [key, value] : store.entries) count += value.size() < 200 && value.find("\nquick") != std::string::npos;
  return count;
}

}  // namespace

TEST_CASE("exchanged code computes the same bits") {
  const auto program = compile_anew(true), settled = compile_anew(false);
  const auto before = results(*program);
  llvm_backend::wait_for_background();
  CHECK(same_results(results(*program), before));
  CHECK(same_results(results(*settled), before));
}

TEST_CASE("no better code is made of what nobody holds, until somebody does again") {
  Store store;
  llvm_backend::KernelCache& cache = llvm_test::fresh_cache(llvm_backend::detect_machine());
  std::promise<void> dropped;
  llvm_backend::run_in_background([&] { dropped.get_future().wait(); });
  compile_in(cache, true);
  dropped.set_value();
  llvm_backend::wait_for_background();
  CHECK(quick_places(store) > 0);
  const auto program = compile_in(cache, true);
  llvm_backend::wait_for_background();
  CHECK(quick_places(store) == 0);
}

TEST_CASE("the store ends with the better code, and quick code that it has is replaced") {
  Store store;
  const auto program = compile_anew(true);
  llvm_backend::wait_for_background();
  CHECK(quick_places(store) == 0);
  const auto good = store.entries;
  compile_anew(true);  // finds the better code: there is nothing to do
  llvm_backend::wait_for_background();
  CHECK(store.entries == good);
}

TEST_CASE("without a swap nothing is left to do") {
  Store store;
  compile_anew(false);
  CHECK(quick_places(store) == 0);
  const auto stored = store.entries;
  llvm_backend::wait_for_background();
  CHECK(store.entries == stored);
}

TEST_CASE("a swap that fails leaves the code as it is, and those behind it go on") {
  bool reached = false;
  llvm_backend::run_in_background([] { throw std::runtime_error("no memory"); });
  llvm_backend::run_in_background([&] { reached = true; });
  llvm_backend::wait_for_background();
  CHECK(reached);
}

TEST_CASE("a child of fork has a background of its own") {
  const auto program = compile_anew(true);
  const pid_t child = fork();
  if (child == 0) {
    const auto own = compile_anew(true);
    llvm_backend::wait_for_background();
    _exit(same_results(results(*own), results(*program)) ? 0 : 1);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  llvm_backend::wait_for_background();
}
