// Code in memory: it stays while a program holds it, and goes some time after the last one.
#include <fmt/format.h>

#include <cstring>

#include "catch.h"
#include "compile/background.h"
#include "compile/code_memory.h"
#include "compile/machine.h"
#include "unit/llvm/running.h"

using namespace tenon;

namespace {

ir::Graph shifted_by(int n) {
  return llvm_test::parse("graph @main (%x: f32[16]) {\n  %e: f32[16] = exp(%x)\n  %s: f32[16] = add(%e, " + std::to_string(n) + ".5)\n  return %s\n}");
}

std::vector<ops::HostTensor> results(llvm_backend::Program& program, const ir::Graph& graph) {
  const auto x = llvm_test::random_tensor(DType::f32, {16}, 7);
  const ops::TensorView inputs[] = {x.view()};
  return llvm_test::run(program, graph, inputs);
}

}  // namespace

TEST_CASE("code that nobody holds goes, that of programs stays", "[kernel_cache]") {
  llvm_backend::KernelCache& cache = llvm_test::fresh_cache(llvm_backend::detect_machine(), 8);
  const std::size_t at_first = llvm_backend::code_memory_use().taken;
  const auto program_of = [&](const ir::Graph& graph) {
    return std::make_unique<llvm_backend::Program>(llvm_test::services(), cache, graph.clone(), llvm_backend::ProgramOptions{});
  };
  const ir::Graph kept_graph = shifted_by(0);
  const auto kept = program_of(kept_graph);
  const auto before = results(*kept, kept_graph);
  const auto made_and_dropped = [&](int first, int last) {
    for (int n = first; n < last; ++n) program_of(shifted_by(n));
    llvm_backend::wait_for_background();
    return llvm_backend::code_memory_use().taken;
  };
  const std::size_t of_few = made_and_dropped(1, 20), of_many = made_and_dropped(20, 120);
  CHECK(cache.size() <= 10);
  CHECK(of_many < of_few + (of_few - at_first));
  const auto after = results(*kept, kept_graph);
  CHECK(std::memcmp(before[0].data(), after[0].data(), before[0].byte_count()) == 0);
  const ir::Graph again = shifted_by(1);
  const auto anew = program_of(again);
  const auto made = results(*anew, again);
  const auto x = static_cast<const float*>(before[0].data()), y = static_cast<const float*>(made[0].data());
  for (int i = 0; i < 16; ++i) CHECK(y[i] == Approx(x[i] + 1));
}

TEST_CASE("a compile that is given up ends before the next node or module", "[kernel_cache]") {
  std::string text = "graph @main (%x: f32[16]) {\n", names;
  for (int n = 0; n < 300; ++n) {
    text += fmt::format("  %e{0}: f32[16] = exp(%x)\n  %a{0}: f32[16] = add(%e{0}, {0}.25)\n  %s{0}: f32[] = sum(%a{0})\n", n);
    names += fmt::format("{}%s{}", n ? ", " : "", n);
  }
  const ir::Graph graph = llvm_test::parse(text + "  return " + names + "\n}");
  const auto compile = [&](llvm_backend::KernelCache& cache, int threads) {
    llvm_backend::ProgramOptions options;
    options.swap_tiers = false;
    return llvm_backend::Program(llvm_test::services(threads), cache, graph.clone(), options);
  };
  int whole = 0;
  {
    const llvm_test::Patience endless(1 << 20);
    compile(llvm_test::fresh_cache(llvm_backend::detect_machine()), 1);
    whole = endless.asked();
  }
  CHECK(whole > 2 * 300);
  for (int questions = 0; questions < whole; questions += whole / 7) {
    const llvm_test::Patience patience(questions);
    const int threads = 1 + questions % 2;
    CHECK_THROWS_WITH(compile(llvm_test::fresh_cache(llvm_backend::detect_machine()), threads), "nobody waits for the kernels any longer");
  }
}
