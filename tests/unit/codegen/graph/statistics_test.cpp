// Reductions over concatenations that share parts.
#include "catch.h"
#include "unit/llvm/running.h"

using namespace tenon;

namespace {

/// Compares with the judge; gives the elements that all reductions of the plan take together.
std::int64_t reduced_elements(std::string_view text) {
  const ir::Graph graph = llvm_test::parse(text);
  const auto [tensors, views] = llvm_test::random_inputs(graph);
  INFO(text);
  CHECK(llvm_test::difference(graph, views, {}, 40).value_or("") == "");
  std::int64_t elements = 0;
  const auto program = llvm_test::compile(graph);
  for (const codegen::Step& step : program->plan().steps) {
    const auto* kernel = std::get_if<codegen::KernelStep>(&step);
    if (!kernel) continue;
    std::int64_t points = static_cast<std::int64_t>(kernel->kernel.reductions.size() * (1 + kernel->others.size()));
    for (const auto* loops : {&kernel->kernel.outer, &kernel->kernel.inner})
      for (const codegen::Loop& l : *loops) points *= l.extent.constant();
    elements += points;
  }
  return elements;
}

}  // namespace

TEST_CASE("what concatenations share is reduced once", "[statistics]") {
  CHECK(reduced_elements(R"(graph @main (%x: f32[2, 16, 9, 7], %y: f32[2, 16, 9, 7], %z: f32[2, 16, 9, 7]) {
    %a: f32[2, 16, 9, 7] = relu(%x)
    %b: f32[2, 16, 9, 7] = relu(%y)
    %c: f32[2, 16, 9, 7] = relu(%z)
    %ab: f32[2, 32, 9, 7] = cat(%a, %b) {dim = 1}
    %abc: f32[2, 48, 9, 7] = cat(%a, %b, %c) {dim = 1}
    %w: f64[2, 32, 9, 7] = _to_copy(%ab) {dtype = f64}
    %m: f64[1, 32, 1, 1] = mean(%w) {dim = [0, 2, 3], keepdim = true}
    %v: f64[2, 48, 9, 7] = _to_copy(%abc) {dtype = f64}
    %q: f64[2, 48, 9, 7] = mul(%v, %v)
    %n: f64[1, 48, 1, 1] = mean(%v) {dim = [0, 2, 3], keepdim = true}
    %s: f64[1, 48, 1, 1] = mean(%q) {dim = [0, 2, 3], keepdim = true}
    %d: f64[1, 48, 1, 1] = sub(%s, %n)
    %e: f64[1, 32, 1, 1] = exp(%m)
    return %d, %e
  })") == 2 * 3 * 16 * 2 * 9 * 7);
}

TEST_CASE("what is reduced along the joined dimension stays whole", "[statistics]") {
  CHECK(reduced_elements(R"(graph @main (%x: f32[8, 16], %y: f32[8, 16], %z: f32[8, 16]) {
    %ab: f32[16, 16] = cat(%x, %y) {dim = 0}
    %abc: f32[24, 16] = cat(%x, %y, %z) {dim = 0}
    %m: f32[1, 16] = sum(%ab) {dim = [0], keepdim = true}
    %n: f32[1, 16] = sum(%abc) {dim = [0], keepdim = true}
    %d: f32[1, 16] = sub(%m, %n)
    return %d
  })") == (16 + 24) * 16);
}
