// What was written to a part of a tensor is read from where it was made, not from the whole.
#include <fmt/format.h>

#include <algorithm>

#include "catch.h"
#include "unit/llvm/running.h"

using namespace tenon;

namespace {

/// The square before all writes, and its copy where the result lies.
constexpr std::size_t kFirstAndCopy = 2;

/// Writes rows of a square, each made of what `view` shows of the square with the rows before, and with those up to the third before it.
std::string read_back(std::string_view view) {
  std::string text = "graph @main (%x: f32[64, 64], %v: f32[64]) {\n  %r0: f32[64, 64] = mul(%x, 2)\n  %t0: f32[64] = add(%v, 1)\n  %t_1: f32[64] = add(%v, 2)\n  %t_2: f32[64] = add(%v, 3)\n";
  const auto before = [](int i) { return i < 0 ? fmt::format("_{}", -i) : fmt::format("{}", i); };
  for (int i = 1; i <= 12; ++i) {
    text += fmt::format("  %p{0}: f32[64] = mul(%t{1}, %v)\n  %s{0}: f32[64] = sub(%p{0}, %t{2})\n", i, before(i - 1), before(i - 3));
    text += fmt::format("  %r{0}: f32[64, 64] = select_scatter(%r{1}, %s{0}) {{dim = 0, index = {0}}}\n", i, i - 1);
    text += fmt::format(fmt::runtime(view), fmt::arg("i", i), fmt::arg("written", i), fmt::arg("other", i + 20));
  }
  return text + "  return %r12\n}";
}

/// Steps that write the whole square, of a program whose results are the judge's.
std::size_t whole_writes(const std::string& text) {
  const ir::Graph graph = llvm_test::parse(text);
  const auto [tensors, views] = llvm_test::random_inputs(graph);
  INFO(text);
  CHECK(llvm_test::difference(graph, views, {}, 40).value_or("") == "");
  const auto program = llvm_test::compile(graph);
  return static_cast<std::size_t>(std::ranges::count_if(program->plan().steps, [](const codegen::Step& step) {
    const auto* kernel = std::get_if<codegen::KernelStep>(&step);
    return kernel && codegen::written_bytes(kernel->kernel) >= 4.0 * 64 * 64;
  }));
}

}  // namespace

TEST_CASE("a part that was written is read without the whole, and so is one beside it", "[part_reads]") {
  CHECK(whole_writes(read_back("  %t{i}: f32[64] = select(%r{i}) {{dim = 0, index = {written}}}\n")) == kFirstAndCopy);
  CHECK(whole_writes(read_back("  %t{i}: f32[64] = select(%r{i}) {{dim = 0, index = {other}}}\n")) == kFirstAndCopy);
}

TEST_CASE("a view that shows more than what was written is read from the whole", "[part_reads]") {
  whole_writes(read_back("  %w{i}: f32[2, 64] = slice(%r{i}) {{dim = 0, end = 13, start = 11, step = 1}}\n  %t{i}: f32[64] = sum(%w{i}) {{dim = [0], keepdim = false}}\n"));
  CHECK(whole_writes(read_back("  %t{i}: f32[64] = select(%r{i}) {{dim = 1, index = {written}}}\n")) > kFirstAndCopy);
}
