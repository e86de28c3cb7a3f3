// Statistics of groups and what is made with them are one kernel where a group stays in cache.
#include "catch.h"
#include "unit/llvm/running.h"

using namespace tenon;

namespace {

/// Runs on random tensors and compares with the judge; gives the number of steps.
std::size_t steps_of(const std::string& text, std::vector<std::vector<std::int64_t>> shapes, llvm_test::Choice choice = {}) {
  const ir::Graph graph = llvm_test::parse(text);
  const auto [tensors, views] = llvm_test::random_inputs(graph, std::move(shapes));
  INFO(text);
  CHECK(llvm_test::difference(graph, views, choice, 40).value_or("") == "");
  return llvm_test::compile(graph, choice)->plan().steps.size();
}

using Shape = std::vector<std::int64_t>;

std::string text_of(const Shape& shape) { return fmt::format("{}", fmt::join(shape, ", ")); }

/// silu(group_norm(x)) with weights.
std::size_t normalised(const Shape& shape, std::int64_t groups, llvm_test::Choice choice = {}) {
  const std::string type = fmt::format("f32[{}]", text_of(shape));
  return steps_of(fmt::format(R"(graph @main (%x: {0}, %w: f32[{1}], %b: f32[{1}]) {{
    %n: {0} = group_norm(%x, %w, %b) {{eps = 1e-5, num_groups = {2}}}
    %y: {0} = silu(%n)
    return %y
  }})", type, shape[1], groups), {shape, {shape[1]}, {shape[1]}}, choice);
}

}  // namespace

TEST_CASE("groups are normalised where their statistics are taken", "[groups]") {
  CHECK(normalised({2, 12, 8, 8}, 4) == 1);
  CHECK(normalised({2, 12, 8, 8}, 4, {.threads = 3}) == 1);
  for (const Shape& picture : {Shape{3, 5}, Shape{17, 3}, Shape{1, 1}, Shape{7, 7}, Shape{40, 40}}) CHECK(normalised({3, 6, picture[0], picture[1]}, 3) == 1);
  CHECK(normalised({3, 8, 5}, 2) == 1);
  CHECK(normalised({8, 6, 4, 3, 5}, 1) == 1);
  CHECK(normalised({4, 6, 9, 9}, 6, {.width = 32}) == 1);
}

TEST_CASE("what other kernels read of a group's channels is stored once", "[groups]") {
  const std::size_t steps = steps_of(R"(graph @main (%x: f32[4, 6, 5, 7], %t: f32[4, 6]) {
    %g: f32[4, 2, 3, 5, 7] = reshape(%x) {shape = [4, 2, 3, 5, 7]}
    %s: f32[4, 2] = sum(%g) {dim = [2, 3, 4], dtype = f32, keepdim = false}
    %o: f32[4, 2, 1] = reshape(%s) {shape = [4, 2, 1]}
    %e: f32[4, 2, 3] = expand(%o) {size = [4, 2, 3]}
    %c: f32[4, 6] = reshape(%e) {shape = [4, 6]}
    %a: f32[4, 6] = add(%c, %t)
    %k: f32[4, 6] = exp(%a)
    %w: f32[4, 6, 1, 1] = reshape(%k) {shape = [4, 6, 1, 1]}
    %y: f32[4, 6, 5, 7] = mul(%x, %w)
    return %k, %y
  })", {{4, 6, 5, 7}, {4, 6}});
  CHECK(steps == 1);
}

TEST_CASE("a group that does not stay in cache is read twice", "[groups]") { CHECK(normalised({1, 2, 300, 300}, 1, {.threads = 2}) > 1); }

TEST_CASE("groups of which the sizes come with the call", "[groups]") {
  const std::string text = R"(graph @main [s0, s1] (%x: f32[s0, 6, s1], %w: f32[6], %b: f32[6]) {
    %n: f32[s0, 6, s1] = group_norm(%x, %w, %b) {eps = 1e-5, num_groups = 2}
    %y: f32[s0, 6, s1] = relu(%n)
    return %y
  })";
  for (const std::int64_t pixels : {1, 16, 100, 3000}) CHECK(steps_of(text, {{5, 6, pixels}, {6}, {6}}) == 1);
}
