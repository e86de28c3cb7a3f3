// Which loops of a scatter threads share, and which run in order: that the results are those of the judge, bit by bit.
#include "catch.h"
#include "decisions/cpu_schedule.h"
#include "unit/llvm/running.h"

using namespace tenon;

namespace {

std::vector<std::int64_t> lengths(const std::vector<codegen::Loop>& loops) {
  std::vector<std::int64_t> found;
  for (const codegen::Loop& l : loops) found.push_back(l.extent.constant());
  return found;
}

struct Loops {
  std::vector<std::int64_t> shared, in_order;
  bool runs_inside;

  bool operator==(const Loops&) const = default;
};

/// The loops of the one scatter of `node`, which adds `count` values along a dimension of 20 at places that are read.
Loops loops_of(const std::string& base, const std::string& values, const std::string& count, const std::string& node) {
  const std::string text = "graph @main (%x: f32[" + base + "], %v: f32[" + values + "]) {\n  %a: i64[" + count + "] = arange() {dtype = i64, end = " + count +
                           ", start = 0, step = 1}\n  %m: i64[" + count + "] = mul(%a, 7)\n  %i: i64[" + count + "] = remainder(%m, 20)\n" + node + "  return %y, %i\n}\n";
  INFO(text);
  const ir::Graph graph = llvm_test::parse(text);
  const auto [tensors, views] = llvm_test::random_inputs(graph);
  for (const int threads : {1, 3}) CHECK(llvm_test::difference(graph, views, {.threads = threads}).value_or("") == "");
  const auto program = llvm_test::compile(graph, {.width = 32});
  for (const auto& step : program->plan().steps) {
    const auto* made = std::get_if<codegen::KernelStep>(&step);
    if (made && made->kernel.scatter)
      return {lengths(made->kernel.outer), lengths(made->kernel.inner), llvm_backend::schedule_of(made->kernel).lanes_inside};
  }
  FAIL("no step is a scatter");
  return {};
}

std::string rows_of(int columns) { return fmt::format("  %y: f32[20, {}] = index_add(%x, %i, %v) {{dim = 0}}\n", columns); }

}  // namespace

TEST_CASE("rows that are added run in order, their columns in lanes", "[scatter]") {
  CHECK(loops_of("20, 64", "50, 64", "50", rows_of(64)) == Loops{{}, {50, 64}, true});
  CHECK(loops_of("20, 13", "50, 13", "50", rows_of(13)) == Loops{{}, {50, 13}, true});
}

TEST_CASE("threads share the columns of long rows that are added", "[scatter]") {
  CHECK(loops_of("20, 300", "50, 300", "50", rows_of(300)) == Loops{{300}, {50}, false});
}

TEST_CASE("threads share rows within which elements are added, as many loops as give them enough to do", "[scatter]") {
  CHECK(loops_of("70, 20", "70, 30", "30", "  %y: f32[70, 20] = index_add(%x, %i, %v) {dim = 1}\n") == Loops{{70}, {30}, false});
  CHECK(loops_of("3, 5, 20", "3, 5, 30", "30", "  %y: f32[3, 5, 20] = index_add(%x, %i, %v) {dim = 2}\n") == Loops{{15}, {30}, false});
  CHECK(loops_of("100, 4, 20", "100, 4, 30", "30", "  %y: f32[100, 4, 20] = index_add(%x, %i, %v) {dim = 2}\n") == Loops{{100}, {4, 30}, false});
  CHECK(loops_of("3, 20, 50", "3, 30, 50", "30", "  %y: f32[3, 20, 50] = index_add(%x, %i, %v) {dim = 1}\n") == Loops{{3}, {30, 50}, true});
}

TEST_CASE("elements that are added along the only dimension run in order", "[scatter]") {
  CHECK(loops_of("20", "50", "50", "  %y: f32[20] = index_add(%x, %i, %v) {dim = 0}\n") == Loops{{}, {50}, false});
}

TEST_CASE("threads share blocks of the columns down which elements are put", "[scatter]") {
  const auto down = [](int columns) {
    return fmt::format("  %c: i64[{0}] = arange() {{dtype = i64, end = {0}, start = 0, step = 1}}\n  %d: i64[{0}] = mul(%c, 7)\n  %e: i64[{0}] = remainder(%d, 20)\n"
                       "  %p: i64[50, {1}] = reshape(%e) {{shape = [50, {1}]}}\n  %y: f32[20, {1}] = scatter(%x, %p, %v) {{dim = 0, reduce = \"sum\"}}\n", 50 * columns, columns);
  };
  CHECK(loops_of("20, 384", "50, 384", "50", down(384)) == Loops{{3}, {50, 128}, false});
  CHECK(loops_of("20, 50", "50, 50", "50", down(50)) == Loops{{50}, {50}, false});
}
