// Rows that several sweeps of one kernel read are computed once, and the results are those of the judge.
#include <algorithm>
#include <cstring>

#include "catch.h"
#include "unit/llvm/running.h"

using namespace tenon;

namespace {

struct Outcome {
  std::size_t steps = 0, rows = 0;
  std::vector<std::string> log;
};

std::size_t rows_of(const llvm_backend::Program& program) {
  std::size_t rows = 0;
  for (const codegen::Step& step : program.plan().steps)
    if (auto* kernel = std::get_if<codegen::KernelStep>(&step)) rows += static_cast<std::size_t>(std::ranges::count_if(kernel->kernel.buffers, [](const auto& b) { return b.row; }));
  return rows;
}

/// Runs on random tensors and compares with the judge.
Outcome outcome_of(const std::string& text, std::vector<std::vector<std::int64_t>> shapes, llvm_test::Choice choice = {}) {
  const ir::Graph graph = llvm_test::parse(text);
  const auto [tensors, views] = llvm_test::random_inputs(graph, std::move(shapes));
  INFO(text);
  CHECK(llvm_test::difference(graph, views, choice, 40).value_or("") == "");
  llvm_test::take_log();
  choice.log = true;
  const auto program = llvm_test::compile(graph, choice);
  return {program->plan().steps.size(), rows_of(*program), llvm_test::take_log()};
}

constexpr const char* kNormOfGelu = R"(graph @main (%x: f32[R, C]) {
  %g: f32[R, C] = gelu(%x)
  %a: f32[R, C] = add(%g, %x)
  %y: f32[R, C] = layer_norm(%a) {eps = 1e-5, normalized_shape = [C]}
  return %y
})";

std::string sized(std::string text, const std::string& rows, const std::string& columns) {
  auto replace = [&](const std::string& from, const std::string& to) {
    for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
  };
  replace("[R,", "[" + rows + ","), replace(", C]", ", " + columns + "]"), replace("[C]", "[" + columns + "]");
  return text;
}

}  // namespace

TEST_CASE("a dear prologue of a normalisation is computed once a point", "[rows]") {
  for (const std::int64_t columns : {5, 16, 64, 100, 515, 4096}) {
    const Outcome found = outcome_of(sized(kNormOfGelu, "7", std::to_string(columns)), {{7, columns}});
    CHECK(found.steps == 1);
    CHECK(found.rows == 1);
    CHECK(std::any_of(found.log.begin(), found.log.end(), [](const std::string& l) { return l.find("keeps a row of") != std::string::npos; }));
  }
}

TEST_CASE("threads have rows of their own", "[rows]") { CHECK(outcome_of(sized(kNormOfGelu, "300", "700"), {{300, 700}}, {.threads = 3}).rows == 1); }

TEST_CASE("a row of which the length comes with the call", "[rows]") {
  const std::string text = R"(graph @main [s0, s1] (%x: f32[s0, s1]) {
    %e: f32[s0, s1] = tanh(%x)
    %y: f32[s0, s1] = softmax(%e) {dim = 1}
    return %y
  })";
  for (const std::int64_t columns : {1, 17, 2000}) CHECK(outcome_of(text, {{9, columns}}, {.threads = 2}).steps == 1);
}

TEST_CASE("softmax computes each exponential once", "[rows]") {
  CHECK(outcome_of(R"(graph @main (%x: f32[33, 100]) {
    %y: f32[33, 100] = softmax(%x) {dim = 1}
    return %y
  })", {{33, 100}}).rows == 1);
}

TEST_CASE("what is cheap is computed again", "[rows]") {
  CHECK(outcome_of(R"(graph @main (%x: f32[33, 100]) {
    %a: f32[33, 100] = mul(%x, 3)
    %y: f32[33, 100] = layer_norm(%a) {eps = 1e-5, normalized_shape = [100]}
    return %y
  })", {{33, 100}}).rows == 0);
}

TEST_CASE("rows of half precision and of several inner loops", "[rows]") {
  CHECK(outcome_of(R"(graph @main (%x: f16[5, 300]) {
    %e: f16[5, 300] = tanh(%x)
    %y: f16[5, 300] = softmax(%e) {dim = 1}
    return %y
  })", {{5, 300}}).steps == 1);
  CHECK(outcome_of(R"(graph @main (%x: f32[6, 4, 5, 50], %w: f32[4, 1, 50]) {
    %e: f32[6, 4, 5, 50] = tanh(%x)
    %a: f32[6, 4, 5, 50] = mul(%e, %w)
    %m: f32[6, 1, 1, 1] = amax(%a) {dim = [1, 2, 3], keepdim = true}
    %d: f32[6, 4, 5, 50] = sub(%a, %m)
    return %d
  })", {{6, 4, 5, 50}, {4, 1, 50}}).rows == 1);
}

TEST_CASE("a row beside a large output does not go around the cache", "[rows]") {
  constexpr std::int64_t kRows = 4200, kFew = 30, kColumns = 4096;
  const ir::Graph large = llvm_test::parse(sized(kNormOfGelu, "4200", "4096")), few = llvm_test::parse(sized(kNormOfGelu, "30", "4096"));
  const auto [tensors, views] = llvm_test::random_inputs(large);
  ops::TensorView last = views[0];
  last.shape[0] = kFew;
  last.data = static_cast<float*>(last.data) + (kRows - kFew) * kColumns;
  CHECK(rows_of(*llvm_test::compile(large, {.threads = 2})) == 1);
  const auto found = llvm_test::run(large, views, {.threads = 2});
  const float* rows = static_cast<const float*>(found[0].data()) + (kRows - kFew) * kColumns;
  CHECK(std::memcmp(rows, llvm_test::run(few, {&last, 1})[0].data(), kFew * kColumns * sizeof(float)) == 0);
  CHECK(llvm_test::difference(few, {&last, 1}, {}, 40).value_or("") == "");
}
