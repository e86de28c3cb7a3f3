// Machine code in the host's store: what one process compiled, another finds. Processes are kernel caches here.
#include "compile/stored_code.h"

#include <cstring>

#include "catch.h"
#include "compile/machine.h"
#include "core/ir/parser.h"
#include "unit/llvm/running.h"

using namespace tenon;
using llvm_test::Store;

namespace {

constexpr const char* kGraph = R"(graph @main (%x: f32[40, 50], %w: f32[50, 60]) {
  %p: f32[40, 60] = mm(%x, %w)
  %e: f32[40, 60] = exp(%p)
  %s: f32[40] = sum(%e) {dim = [1], keepdim = false}
  %r: f32[60, 50] = permute(%w) {dims = [1, 0]}
  return %s, %e, %r
})";

/// Compiles in a cache that knows nothing, runs, and gives what the graph gives.
std::vector<ops::HostTensor> run_in_new_process(const ir::Graph& graph, const llvm_backend::Target& target, int threads = 1) {
  llvm_backend::KernelCache& cache = llvm_test::fresh_cache(target);
  llvm_backend::ProgramOptions options;
  options.swap_tiers = false;
  llvm_backend::Program program(llvm_test::services(threads), cache, graph.clone(), options);
  const auto x = llvm_test::random_tensor(DType::f32, {40, 50}, 1), w = llvm_test::random_tensor(DType::f32, {50, 60}, 2);
  const ops::TensorView inputs[] = {x.view(), w.view()};
  return llvm_test::run(program, graph, inputs);
}

bool equal(const std::vector<ops::HostTensor>& a, const std::vector<ops::HostTensor>& b) {
  for (std::size_t i = 0; i < a.size(); ++i)
    if (std::memcmp(a[i].data(), b[i].data(), a[i].byte_count()) != 0) return false;
  return a.size() == b.size();
}

}  // namespace

TEST_CASE("a second process finds all code, and computes the same bits") {
  const ir::Graph graph = ir::parse_graph(kGraph).value();
  const llvm_backend::Target target = llvm_backend::detect_machine();
  Store store;
  const auto first = run_in_new_process(graph, target);
  CHECK(store.hits == 0);
  const auto stored = store.entries;
  CHECK(stored.size() >= 4);
  store.misses = 0;
  const auto second = run_in_new_process(graph, target, 3);
  CHECK(store.misses == 0);
  CHECK(store.hits > 0);
  CHECK(store.entries == stored);
  CHECK(equal(first, second));
}

TEST_CASE("code for another machine is not taken") {
  const ir::Graph graph = ir::parse_graph(kGraph).value();
  Store store;
  run_in_new_process(graph, llvm_backend::detect_machine());
  run_in_new_process(graph, llvm_backend::detect_machine(16));
  CHECK(store.hits == 0);
  llvm_backend::Target other = llvm_backend::detect_machine();
  other.features += ",-xop";
  run_in_new_process(graph, other);
  CHECK(store.hits == 0);
}

TEST_CASE("stored code that cannot be used is compiled anew and replaced") {
  const ir::Graph graph = ir::parse_graph(kGraph).value();
  const llvm_backend::Target target = llvm_backend::detect_machine();
  const std::string bad = GENERATE(as<std::string>(), "", "\n", "\nno object file", "an_unknown_routine\n\n", "no end of line");
  Store store;
  const auto first = run_in_new_process(graph, target);
  const auto good = store.entries;
  for (auto& [key, value] : store.entries) value = bad;
  CHECK(equal(run_in_new_process(graph, target), first));
  CHECK(store.entries == good);
}

TEST_CASE("an object that is gone is a miss for its kernels") {
  const ir::Graph graph = ir::parse_graph(kGraph).value();
  const llvm_backend::Target target = llvm_backend::detect_machine();
  Store store;
  const auto first = run_in_new_process(graph, target);
  std::erase_if(store.entries, [](const auto& entry) { return entry.second.size() > 200; });
  CHECK(equal(run_in_new_process(graph, target), first));
}

TEST_CASE("kernels that many graphs share are found in each of them") {
  const llvm_backend::Target target = llvm_backend::detect_machine();
  const auto graph = [](const char* last) {
    return ir::parse_graph(fmt::format("graph @main (%x: f32[40, 50], %w: f32[50, 60]) {{\n%s: f32[40] = sum(%x) {{dim = [1], keepdim = false}}\n%r: f32[60] = {}\nreturn %s, %r\n}}", last)).value();
  };
  Store store;
  run_in_new_process(graph("sum(%w) {dim = [0], keepdim = false}"), target);
  store.hits = 0;
  run_in_new_process(graph("amax(%w) {dim = [0], keepdim = false}"), target);
  CHECK(store.hits == 2);  // where the sum over rows is, and its code
}
