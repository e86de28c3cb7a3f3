// What is fused into how many kernels, and that the results are those of the judge.
#include <algorithm>

#include "catch.h"
#include "unit/llvm/running.h"

using namespace tenon;

namespace {

/// Runs on tensors of the given shapes (all float32) and compares; gives the number of steps.
std::size_t check(std::string_view text, std::vector<std::vector<std::int64_t>> shapes, llvm_test::Choice choice = {}) {
  const ir::Graph graph = llvm_test::parse(text);
  const auto [tensors, views] = llvm_test::random_inputs(graph, std::move(shapes));
  const auto d = llvm_test::difference(graph, views, choice, 40);
  INFO(text);
  CHECK(d.value_or("") == "");
  return llvm_test::compile(graph, choice)->plan().steps.size();
}

}  // namespace

TEST_CASE("a pointwise chain is one kernel", "[fusion]") {
  const char* text = R"(graph @main (%x: f32[37, 65]) {
    %a: f32[37, 65] = add(%x, 1)
    %b: f32[37, 65] = relu(%a)
    %c: f32[37, 65] = mul(%b, 2)
    return %c
  })";
  CHECK(check(text, {{37, 65}}) == 1);
  CHECK(check(text, {{37, 65}}, {.fuse = false}) == 3);
}

TEST_CASE("a choice between literals is summed in its own dtype", "[fusion]") {
  CHECK(check(R"(graph @main (%x: f32[3, 2]) {
    %c: bool[3, 2] = isnan(%x)
    %w: f64[3, 2] = where(%c, 0.5, 0.0)
    %s: f64[2] = sum(%w) {dim = [0], dtype = f64, keepdim = false}
    return %s
  })", {{3, 2}}) == 1);
}

TEST_CASE("broadcasts and views are part of a kernel", "[fusion]") {
  CHECK(check(R"(graph @main (%x: f32[6, 7], %y: f32[7, 6], %b: f32[6]) {
    %t: f32[7, 6] = permute(%x) {dims = [1, 0]}
    %s: f32[7, 6] = add(%t, %y)
    %c: f32[7, 6] = mul(%s, %b)
    return %c
  })", {{6, 7}, {7, 6}, {6}}) == 1);
}

TEST_CASE("a transposition runs in tiles", "[fusion]") {
  const char* text = R"(graph @main (%x: f32[3, 131, 70]) {
    %t: f32[3, 70, 131] = permute(%x) {dims = [0, 2, 1]}
    %y: f32[3, 70, 131] = mul(%t, 2)
    return %y
  })";
  CHECK(check(text, {{3, 131, 70}}) == 1);
  CHECK(check(text, {{3, 131, 70}}, {.threads = 3}) == 1);
}

TEST_CASE("softmax runs over a row in one kernel", "[fusion]") {
  const char* text = R"(graph @main (%x: f32[33, 100]) {
    %y: f32[33, 100] = softmax(%x) {dim = 1}
    return %y
  })";
  CHECK(check(text, {{33, 100}}) == 1);
}

TEST_CASE("softmax over the first dimension runs in one kernel", "[fusion]") {
  const char* text = R"(graph @main (%x: f32[20, 70]) {
    %y: f32[20, 70] = softmax(%x) {dim = 0}
    return %y
  })";
  CHECK(check(text, {{20, 70}}) == 1);
}

TEST_CASE("a reduction takes its prologue and epilogue", "[fusion]") {
  CHECK(check(R"(graph @main (%x: f32[50, 130]) {
    %e: f32[50, 130] = exp(%x)
    %s: f32[50] = sum(%e) {dim = [1], keepdim = false}
    %l: f32[50] = log(%s)
    return %l
  })", {{50, 130}}) == 1);
}

TEST_CASE("a large full reduction is split in parts", "[fusion]") {
  const char* text = R"(graph @main (%x: f32[700, 700]) {
    %s: f32[] = sum(%x) {dim = [0, 1], keepdim = false}
    return %s
  })";
  CHECK(check(text, {{700, 700}}) == 2);
  CHECK(check(text, {{700, 700}}, {.threads = 3}) == 2);
}

TEST_CASE("lanes run over the channels of groups, channels last", "[fusion]") {
  const char* text = R"(graph @main (%x: f32[2, 30, 40, 48]) {
    %c: f32[2, 48, 30, 40] = permute(%x) {dims = [0, 3, 1, 2]}
    %g: f32[2, 4, 12, 30, 40] = reshape(%c) {shape = [2, 4, 12, 30, 40]}
    %s: f32[2, 4] = sum(%g) {dim = [2, 3, 4], keepdim = false}
    %m: f32[2, 4] = amax(%g) {dim = [2, 3, 4], keepdim = false}
    return %s, %m
  })";
  CHECK(check(text, {{2, 30, 40, 48}}) == 2);
  CHECK(check(text, {{2, 30, 40, 48}}, {.threads = 3}) == 2);
}

TEST_CASE("a matrix product with bias and relu", "[fusion]") {
  const char* text = R"(graph @main (%x: f32[70, 90], %w: f32[110, 90], %b: f32[110]) {
    %t: f32[90, 110] = permute(%w) {dims = [1, 0]}
    %y: f32[70, 110] = mm(%x, %t)
    %z: f32[70, 110] = add(%y, %b)
    %r: f32[70, 110] = relu(%z)
    return %r
  })";
  CHECK(check(text, {{70, 90}, {110, 90}, {110}}) == 1);
  CHECK(check(text, {{70, 90}, {110, 90}, {110}}, {.matrix_kernels = false}) == 1);
  CHECK(check(text, {{70, 90}, {110, 90}, {110}}, {.threads = 2}) == 1);
}

TEST_CASE("what follows a matrix product runs on its tiles", "[fusion]") {
  const char* residual = R"(graph @main (%x: f32[3, 40, 90], %w: f32[110, 90], %b: f32[110], %r: f32[3, 40, 110]) {
    %f: f32[120, 90] = reshape(%x) {shape = [120, 90]}
    %t: f32[90, 110] = permute(%w) {dims = [1, 0]}
    %y: f32[120, 110] = mm(%f, %t)
    %v: f32[3, 40, 110] = reshape(%y) {shape = [3, 40, 110]}
    %z: f32[3, 40, 110] = add(%v, %b)
    %g: f32[3, 40, 110] = gelu(%z)
    %s: f32[3, 40, 110] = add(%g, %r)
    return %s
  })";
  const std::vector<std::vector<std::int64_t>> shapes{{3, 40, 90}, {110, 90}, {110}, {3, 40, 110}};
  CHECK(check(residual, shapes) == 1);
  for (const unsigned width : {32u, 16u}) CHECK(check(residual, shapes, {.width = width, .threads = 3}) == 1);
}

TEST_CASE("what follows products of one column, or of one row and one column, runs on their tiles", "[fusion]") {
  for (const auto& [m, n] : {std::pair(5, 1), {1, 5}, {1, 1}}) {
    const std::string text = fmt::format(R"(graph @main (%x: f32[40, {0}, 900], %y: f32[40, {1}, 900]) {{
      %t: f32[40, 900, {1}] = permute(%y) {{dims = [0, 2, 1]}}
      %p: f32[40, {0}, {1}] = bmm(%x, %t)
      %e: f32[40, {0}, {1}] = tanh(%p)
      return %e
    }})", m, n);
    for (const unsigned width : {0u, 32u, 16u}) CHECK(check(text, {{40, m, 900}, {40, n, 900}}, {.width = width}) == 1);
  }
}

TEST_CASE("weights of another dtype are multiplied with few rows where they lie", "[fusion]") {
  for (const int rows : {1, 4}) {
    const std::string text = fmt::format(R"(graph @main (%x: f32[{0}, 300], %w: bf16[200, 300]) {{
      %f: f32[200, 300] = _to_copy(%w) {{dtype = f32}}
      %t: f32[300, 200] = permute(%f) {{dims = [1, 0]}}
      %y: f32[{0}, 200] = mm(%x, %t)
      return %y
    }})", rows);
    CHECK(check(text, {{rows, 300}, {200, 300}}) == 1);
    CHECK(check(text, {{rows, 300}, {200, 300}}, {.threads = 2}) == 1);
  }
}

TEST_CASE("a product that others read too is stored beside what follows it", "[fusion]") {
  CHECK(check(R"(graph @main (%x: f32[2, 50, 30], %y: f32[2, 30, 40]) {
    %p: f32[2, 50, 40] = bmm(%x, %y)
    %e: f32[2, 50, 40] = exp(%p)
    %s: f32[2, 50] = sum(%p) {dim = [2], keepdim = false}
    return %e, %s
  })", {{2, 50, 30}, {2, 30, 40}}) == 2);
}

TEST_CASE("a shortcut is added to a product once, in front of what reduces the sum", "[fusion]") {
  const ir::Graph graph = llvm_test::parse(R"(graph @main (%x: f32[2, 50, 40], %a: f32[100, 64], %w: f32[64, 40]) {
    %p: f32[100, 40] = mm(%a, %w)
    %q: f32[2, 50, 40] = reshape(%p) {shape = [2, 50, 40]}
    %y: f32[2, 50, 40] = add(%x, %q)
    %t: f32[2, 50, 1] = amax(%y) {dim = [2], keepdim = true}
    %z: f32[2, 50, 40] = sub(%y, %t)
    return %z
  })");
  std::vector<ops::HostTensor> tensors;
  std::vector<ops::TensorView> views;
  for (const auto& shape : {std::vector<std::int64_t>{2, 50, 40}, {100, 64}, {64, 40}}) tensors.push_back(llvm_test::random_tensor(DType::f32, shape, 1 + tensors.size()));
  for (auto& t : tensors) views.push_back(t.view());
  CHECK(llvm_test::difference(graph, views, {}, 40).value_or("") == "");
  llvm_test::take_log();
  llvm_test::compile(graph, {.log = true});
  const auto log = llvm_test::take_log();
  CHECK(std::count_if(log.begin(), log.end(), [](const std::string& line) { return line.find("store %y: it follows a product and is reduced") != std::string::npos; }) == 1);
}

TEST_CASE("rows that are written for a product leave the other operand where it lies", "[fusion]") {
  const ir::Graph graph = llvm_test::parse(R"(graph @main (%x: f32[3, 5, 40], %w: f32[110, 200]) {
    %p: f32[3, 40, 5] = permute(%x) {dims = [0, 2, 1]}
    %f: f32[3, 200] = reshape(%p) {shape = [3, 200]}
    %t: f32[200, 110] = permute(%w) {dims = [1, 0]}
    %y: f32[3, 110] = mm(%f, %t)
    return %y
  })");
  CHECK(llvm_test::compile(graph)->workspace_bytes({}) <= 3 * 200 * 4 + 64);
}

TEST_CASE("a shortcut beside products is stored, and not added up anew by each layer", "[fusion]") {
  auto layers = [](int count) {
    std::string text = "graph @main (%x0: f32[64, 96], %w: f32[96, 96], %g: f32[96]) {\n";
    for (int i = 0; i < count; ++i)
      text += fmt::format("  %a{0}: f32[64, 96] = mul(%x{0}, %g)\n  %p{0}: f32[64, 96] = mm(%a{0}, %w)\n  %x{1}: f32[64, 96] = add(%x{0}, %p{0})\n", i, i + 1);
    return text + fmt::format("  %y: f32[64, 96] = neg(%x{0})\n  return %y\n}}", count);
  };
  check(layers(1), {{64, 96}, {96, 96}, {96}});
  CHECK(llvm_test::compile(llvm_test::parse(layers(9)))->workspace_bytes({}) == llvm_test::compile(llvm_test::parse(layers(3)))->workspace_bytes({}));
}

TEST_CASE("steps write over what nobody reads later", "[fusion]") {
  const char* text = R"(graph @main (%x: f32[60, 90], %v: f32[90, 90], %w: f32[90, 90]) {
    %m: f32[60, 90] = mm(%x, %v)
    %p: f32[60, 90] = tanh(%m)
    %e: f32[60, 90] = softmax(%p) {dim = 1}
    %q: f32[60, 90] = mm(%e, %w)
    %s: f32[60, 90] = add(%q, %e)
    %r: f32[60, 90] = mm(%s, %w)
    return %r
  })";
  check(text, {{60, 90}, {90, 90}, {90, 90}});
  CHECK(llvm_test::compile(llvm_test::parse(text))->workspace_bytes({}) == 2 * 60 * 90 * 4 + 2 * 32);
}

TEST_CASE("a product with a transposed result is stored from its tiles", "[fusion]") {
  const char* text = R"(graph @main (%x: f32[70, 90], %y: f32[90, 65]) {
    %p: f32[70, 65] = mm(%x, %y)
    %t: f32[65, 70] = permute(%p) {dims = [1, 0]}
    %z: f32[65, 70] = mul(%t, 2)
    return %z
  })";
  check(text, {{70, 90}, {90, 65}});
}

TEST_CASE("a stencil's producer is computed once", "[fusion]") {
  const char* text = R"(graph @main (%x: f32[40, 50]) {
    %e: f32[40, 50] = exp(%x)
    %f: f32[40, 50] = tanh(%e)
    %a: f32[40, 48] = slice(%f) {dim = 1, start = 0, end = 48, step = 1}
    %b: f32[40, 48] = slice(%f) {dim = 1, start = 1, end = 49, step = 1}
    %c: f32[40, 48] = slice(%f) {dim = 1, start = 2, end = 50, step = 1}
    %s: f32[40, 48] = add(%a, %b)
    %t: f32[40, 48] = add(%s, %c)
    return %t
  })";
  CHECK(check(text, {{40, 50}}) == 2);
}

TEST_CASE("one program serves every size", "[dynamic]") {
  const ir::Graph graph = llvm_test::parse(R"(graph @main [s0: 1..4096, s1: 1..4096] (%x: f32[s0, s1], %y: f32[s1]) {
    %a: f32[s0, s1] = add(%x, %y)
    %m: f32[s0, s1] = softmax(%a) {dim = 1}
    %s: f32[s1] = sum(%m) {dim = [0], keepdim = false}
    return %m, %s
  })");
  const auto program = llvm_test::compile(graph);
  for (std::int64_t n = 1; n <= 20; ++n) {
    const auto x = llvm_test::random_tensor(DType::f32, {n * 3, n * n}, 5), y = llvm_test::random_tensor(DType::f32, {n * n}, 6);
    const ops::TensorView views[] = {x.view(), y.view()};
    const auto got = llvm_test::run(*program, graph, views);
    const auto want = ops::evaluate(graph, views, ops::Precision::judge);
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(ops::first_difference(got[i].view(), want[i].view(), 40).value_or("") == "");
  }
}

TEST_CASE("parts of a sum that end within a vector are as long as each is", "[dynamic]") {
  const ir::Graph graph = llvm_test::parse(R"(graph @main [s0: 2..4096] (%x: f32[867, s0]) {
    %t: f32[s0, 867] = permute(%x) {dims = [1, 0]}
    %s: f32[] = sum(%t) {dim = [0, 1], keepdim = false}
    return %s
  })");
  const auto program = llvm_test::compile(graph);
  for (const std::int64_t n : {6, 7, 8, 9, 40}) {
    const auto x = llvm_test::random_tensor(DType::f32, {867, n}, 7);
    const ops::TensorView views[] = {x.view()};
    const auto want = ops::evaluate(graph, views, ops::Precision::judge);
    CHECK(ops::first_difference(llvm_test::run(*program, graph, views)[0].view(), want[0].view(), 40).value_or("") == "");
  }
}

TEST_CASE("equal kernels compile once", "[cache]") {
  const ir::Graph graph = llvm_test::parse(R"(graph @main (%x: f32[123]) {
    %a: f32[123] = sub(%x, 7.5)
    return %a
  })");
  const auto compiled = [&] {
    llvm_test::compile(graph, {.log = true});
    const auto log = llvm_test::take_log();
    return std::ranges::count_if(log, [](const std::string& line) { return line.find("define void @kernel") != std::string::npos && line.find("7.5") != std::string::npos; });
  };
  CHECK(compiled() == 1);
  CHECK(compiled() == 0);
}

TEST_CASE("loops that vectors fill, leave a register's worth of, or leave lanes of", "[fusion]") {
  for (const std::int64_t n : {0, 1, 15, 16, 31, 32, 48, 63, 64, 80, 96, 127, 128, 4096, 4112}) {
    const std::string size = std::to_string(n);
    const std::string text = "graph @main (%x: f32[3, " + size + "]) {\n    %s: f32[3] = sum(%x) {dim = [1], dtype = f32, keepdim = false}\n"
        "    %e: f32[3, " + size + "] = exp(%x)\n    %m: f32[3, " + size + "] = softmax(%x) {dim = 1}\n    return %s, %e, %m\n  }";
    for (const unsigned width : {0u, 32u, 16u}) check(text, {{3, n}}, {.width = width});
  }
}

namespace {

/// A kernel's buffers, counted over all of its runs.
std::vector<std::size_t> runs_of_kernels(const ir::Graph& graph, llvm_test::Choice choice = {}) {
  std::vector<std::size_t> runs;
  const auto program = llvm_test::compile(graph, choice);
  for (const codegen::Step& step : program->plan().steps)
    if (auto* kernel = std::get_if<codegen::KernelStep>(&step)) runs.push_back(1 + kernel->others.size());
  return runs;
}

bool logs(std::string_view text, std::string_view line) {
  llvm_test::take_log();
  llvm_test::compile(llvm_test::parse(text), {.log = true});
  const auto log = llvm_test::take_log();
  return std::any_of(log.begin(), log.end(), [&](const std::string& l) { return l.find(line) != std::string::npos; });
}

}  // namespace

TEST_CASE("small equal kernels run in one launch", "[fusion]") {
  const char* text = R"(graph @main (%x: f32[40, 70], %y: f32[40, 70], %z: f32[40, 70], %b: f32[70], %c: f32[70], %d: f32[70]) {
    %s: f32[40, 70] = add(%x, %b)
    %t: f32[40, 70] = add(%y, %c)
    %u: f32[40, 70] = add(%z, %d)
    return %s, %t, %u
  })";
  const std::vector<std::vector<std::int64_t>> shapes = {{40, 70}, {40, 70}, {40, 70}, {70}, {70}, {70}};
  CHECK(check(text, shapes) == 1);
  CHECK(check(text, shapes, {.threads = 3}) == 1);
  CHECK(check(text, shapes, {.fuse = false}) == 3);
  CHECK(runs_of_kernels(llvm_test::parse(text)) == std::vector<std::size_t>{3});
  CHECK(logs(text, "the kernel of %t starts with that of %s, which is equal"));
}

TEST_CASE("small norms run in one launch", "[fusion]") {
  const char* text = R"(graph @main (%x: f32[33, 100], %y: f32[33, 100]) {
    %s: f32[33, 100] = softmax(%x) {dim = 1}
    %t: f32[33, 100] = softmax(%y) {dim = 1}
    return %s, %t
  })";
  CHECK(check(text, {{33, 100}, {33, 100}}) == 1);
  CHECK(check(text, {{33, 100}, {33, 100}}, {.threads = 3}) == 1);
}

TEST_CASE("a kernel that needs what runs in between is launched alone", "[fusion]") {
  const char* text = R"(graph @main (%x: f32[30, 30], %y: f32[30, 30]) {
    %s: f32[30, 30] = softmax(%x) {dim = 1}
    %m: f32[30, 30] = mm(%s, %y)
    %t: f32[30, 30] = softmax(%m) {dim = 1}
    return %t
  })";
  CHECK(check(text, {{30, 30}, {30, 30}}) == 3);
  CHECK(logs(text, "does not start with that of"));
  CHECK(logs(text, "it needs what runs in between"));
}

TEST_CASE("long equal kernels are launched apart", "[fusion]") {
  const char* text = R"(graph @main (%x: f32[2000, 600], %y: f32[2000, 600]) {
    %s: f32[2000, 600] = add(%x, 1)
    %t: f32[2000, 600] = add(%y, 1)
    return %s, %t
  })";
  CHECK(runs_of_kernels(llvm_test::parse(text)) == std::vector<std::size_t>{1, 1});
  CHECK(logs(text, "fill the machine"));
}
