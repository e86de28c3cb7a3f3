// Writes to parts of tensors: over the parts alone, in place, with the results of the judge.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "catch.h"
#include "unit/llvm/running.h"

using namespace tenon;

namespace {

/// Runs on tensors of the given shapes (all float32) and compares; gives the number of steps.
std::size_t check_part_write(std::string_view text, std::vector<std::vector<std::int64_t>> shapes) {
  const ir::Graph graph = llvm_test::parse(text);
  const auto [tensors, views] = llvm_test::random_inputs(graph, std::move(shapes));
  const auto d = llvm_test::difference(graph, views, {}, 40);
  INFO(text);
  CHECK(d.value_or("") == "");
  return llvm_test::compile(graph)->plan().steps.size();
}

/// Steps that write the whole of a square, not a row of it.
std::size_t whole_writes(std::string_view text) {
  const auto program = llvm_test::compile(llvm_test::parse(text));
  return static_cast<std::size_t>(std::ranges::count_if(program->plan().steps, [](const codegen::Step& step) {
    auto* kernel = std::get_if<codegen::KernelStep>(&step);
    double points = 1;
    if (kernel)
      for (const codegen::Loop& loop : kernel->kernel.outer) points *= static_cast<double>(loop.extent.constant());
    return points == 64 * 64;
  }));
}

/// Writes rows of a square one after the other, each made of the one before; `result` names what is given besides.
std::string row_writes(int rows, std::string_view result) {
  std::string text = "graph @main (%x: f32[64, 64], %v: f32[64]) {\n  %r0: f32[64, 64] = mul(%x, 2)\n  %s0: f32[64] = add(%v, 1)\n";
  for (int i = 1; i <= rows; ++i) {
    text += fmt::format("  %s{0}: f32[64] = mul(%s{1}, %v)\n", i, i - 1);
    text += fmt::format("  %r{0}: f32[64, 64] = select_scatter(%r{1}, %s{0}) {{dim = 0, index = {2}}}\n", i, i - 1, 3 * i);
  }
  return text + fmt::format("  %end: f32[64, 64] = add(%r{}, %{})\n  return %end\n}}", rows, result);
}

}  // namespace

TEST_CASE("many writes to parts run over the parts alone, in place", "[fusion]") {
  const std::vector<std::vector<std::int64_t>> shapes{{64, 64}, {64}};
  for (const char* result : {"r12", "r5", "r0"}) check_part_write(row_writes(12, result), shapes);
  const std::size_t wholes = whole_writes(row_writes(12, "r12"));
  CHECK(whole_writes(row_writes(12, "r5")) == wholes + 1);  // somebody reads what was there before: a copy
  CHECK(check_part_write(row_writes(3, "r3"), shapes) == 1);  // few writes are choices in the kernel that reads the whole
}

TEST_CASE("a write from an input to an output runs over its part where the output may lie over the input", "[fusion]") {
  const auto write = [](std::string_view source) {
    return fmt::format("graph @main (%x: f32[64, 64], %v: f32[64]) {{\n  {}\n  %r: f32[64, 64] = select_scatter(%x, %s) {{dim = 0, index = 3}}\n  return %r\n}}", source);
  };
  const std::string of_another = write("%s: f32[64] = mul(%v, 2)");
  CHECK(check_part_write(of_another, {{64, 64}, {64}}) == 2);
  CHECK(llvm_test::compile(llvm_test::parse(of_another))->aliases().size() == 1);
  const std::string of_itself = write("%t: f32[64] = select(%x) {dim = 1, index = 3}\n  %s: f32[64] = mul(%t, 2)");
  CHECK(check_part_write(of_itself, {{64, 64}, {64}}) == 3);  // what is read of the input is kept before it is written
  CHECK(llvm_test::compile(llvm_test::parse(of_itself))->aliases().size() == 1);
}

TEST_CASE("a channel of a picture is written alone", "[fusion]") {
  const char* const text = R"(graph @main (%x: f32[32, 40, 3], %v: f32[32, 40]) {
    %s: f32[32, 40] = mul(%v, 2)
    %r: f32[32, 40, 3] = select_scatter(%x, %s) {dim = 2, index = 1}
    return %r
  })";
  CHECK(check_part_write(text, {{32, 40, 3}, {32, 40}}) == 2);
  CHECK(llvm_test::compile(llvm_test::parse(text))->aliases().size() == 1);
}

TEST_CASE("writes to parts that differ in their place alone are one kernel", "[fusion]") {
  const auto program = llvm_test::compile(llvm_test::parse(row_writes(12, "r12")));
  std::set<std::string> kernels;
  for (const auto& step : program->plan().steps)
    if (auto* kernel = std::get_if<codegen::KernelStep>(&step); kernel && kernel->kernel.stages.at(0).stores.size() == 1) kernels.insert(codegen::to_text(kernel->kernel));
  CHECK(kernels.size() < program->plan().steps.size() / 2);
}

TEST_CASE("a write to columns of rows is one write, and one that is overwritten at once is none", "[fusion]") {
  std::string text = "graph @main (%x: f32[40, 50], %v: f32[20]) {\n  %r0: f32[40, 50] = add(%x, 1)\n";
  for (int i = 1; i <= 12; ++i) {
    text += fmt::format("  %w{0}: f32[20, 50] = slice(%r{1}) {{dim = 0, end = 25, start = 5, step = 1}}\n", i, i - 1);
    text += fmt::format("  %s{0}: f32[20] = mul(%v, {0})\n  %t{0}: f32[20, 50] = select_scatter(%w{0}, %s{0}) {{dim = 1, index = {1}}}\n", i, std::min(5 * i, 45));
    text += fmt::format("  %r{0}: f32[40, 50] = slice_scatter(%r{1}, %t{0}) {{dim = 0, end = 25, start = 5, step = 1}}\n", i, i - 1);
  }
  const std::string all = text + "  return %r12\n}";
  const std::size_t steps = check_part_write(all, {{40, 50}, {20}});
  const auto program = llvm_test::compile(llvm_test::parse(all));
  double written = 0;
  for (const auto& step : program->plan().steps) written += codegen::written_bytes(std::get<codegen::KernelStep>(step).kernel);
  CHECK(steps == 11);
  CHECK(written <= 4.0 * (2 * 40 * 50 + 9 * 20));
}
