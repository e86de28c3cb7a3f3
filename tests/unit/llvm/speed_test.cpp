// Times of compiling and running, printed and not asserted: test_llvm "[.speed]".
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>

#include "catch.h"
#include "core/ir/parser.h"
#include "running.h"

using namespace tenon;

namespace {

double now() { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Processor time of this thread: what compiling costs on a machine with nothing else to do.
double busy() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e3 + static_cast<double>(t.tv_nsec) * 1e-6;
}

ir::Graph parse(const std::string& text) { return ir::parse_graph(text).value(); }

/// A chain of `count` pointwise operations that no other chain equals.
std::string chain(int count, int salt) {
  std::string text = "graph @main (%x0: f32[4096]) {\n";
  for (int i = 0; i < count; ++i) {
    const char* ops[] = {"add", "mul", "maximum"};
    text += fmt::format("  %x{}: f32[4096] = {}(%x{}, {})\n", i + 1, ops[i % 3], i, 1.5 + i + salt);
  }
  return text + fmt::format("  return %x{}\n}}\n", count);
}

void time_compile(const char* what, const std::string& text) {
  const ir::Graph graph = parse(text);
  const double start = busy();
  llvm_test::compile(graph);
  std::printf("compile %-34s %8.2f ms\n", what, busy() - start);
}

/// The least time of a run over warm memory.
void time_run(const char* what, const std::string& text, int threads, double work, const char* unit, llvm_test::Choice choice = {}) {
  choice.threads = threads;
  const ir::Graph graph = parse(text);
  const double start = busy();
  const auto program = llvm_test::compile(graph, choice);
  const double compiled = busy() - start;
  std::vector<ops::HostTensor> inputs;
  std::vector<const void*> in;
  std::vector<void*> out;
  std::vector<ops::HostTensor> outputs;
  for (ValueId v : graph.inputs()) {
    std::vector<std::int64_t> shape;
    for (const auto& d : graph.type(v).shape) shape.push_back(d.constant());
    inputs.emplace_back(graph.type(v).dtype, shape);
    auto& t = inputs.back();
    if (t.dtype == DType::f32)
      for (std::int64_t i = 0; i < t.element_count(); ++i) t.as<float>()[i] = static_cast<float>((i * 7919) % 2003) / 1000.0f - 1;
    else if (t.dtype == DType::f64)
      for (std::int64_t i = 0; i < t.element_count(); ++i) t.as<double>()[i] = static_cast<double>((i * 7919) % 2003) / 1000.0 - 1;
    in.push_back(t.data());
  }
  for (const auto& o : graph.outputs()) {
    std::vector<std::int64_t> shape;
    for (const auto& d : graph.type(o.value).shape) shape.push_back(d.constant());
    outputs.emplace_back(graph.type(o.value).dtype, shape);
    out.push_back(outputs.back().data());
  }
  const std::unique_ptr<void, void (*)(void*)> workspace(std::aligned_alloc(64, (program->workspace_bytes({}) + 127) / 64 * 64), std::free);
  TenonExecuteArgs args{};
  args.struct_size = sizeof args;
  args.inputs = in.data();
  args.outputs = out.data();
  args.workspace = workspace.get();
  double best = 1e9;
  const double until = now() + 400;
  for (int i = 0; i < 5 || now() < until; ++i) {
    const double t = now();
    program->execute(args);
    best = std::min(best, now() - t);
  }
  std::printf("%-46s %d thread%s %9.3f ms %9.1f %s   (compile %.1f ms, %zu steps)\n", what, threads, threads > 1 ? "s" : " ", best, work / best * 1e-6, unit, compiled,
              program->plan().steps.size());
}

}  // namespace

TEST_CASE("speed", "[.speed]") {
  time_compile("first: 3 operations", chain(3, 100));
  time_compile("second: 3 operations", chain(3, 200));
  time_compile("20 operations", chain(20, 300));
  time_compile("20 operations", chain(20, 400));
  time_compile("softmax", "graph @main (%x: f32[128, 1000]) {\n%y: f32[128, 1000] = softmax(%x) {dim = 1}\nreturn %y\n}");
  time_compile("first matrix product", "graph @main (%x: f32[128, 128], %y: f32[128, 128]) {\n%z: f32[128, 128] = mm(%x, %y)\nreturn %z\n}");
  const std::string relu = "graph @main (%x: f32[4096, 4096]) {\n%a: f32[4096, 4096] = add(%x, 1)\n%b: f32[4096, 4096] = relu(%a)\n%c: f32[4096, 4096] = mul(%b, 2)\nreturn %c\n}";
  for (int threads : {1, 2}) time_run("relu(x + 1) * 2, 4096 x 4096", relu, threads, 2.0 * 4096 * 4096 * 4, "GB/s");
  const std::string small = "graph @main (%x: f32[64, 64]) {\n%a: f32[64, 64] = add(%x, 1)\n%b: f32[64, 64] = relu(%a)\n%c: f32[64, 64] = mul(%b, 2)\nreturn %c\n}";
  time_run("relu(x + 1) * 2, 64 x 64", small, 1, 2.0 * 64 * 64 * 4, "GB/s");
  for (int threads : {1, 2}) {
    time_run("softmax, 4096 x 1024", "graph @main (%x: f32[4096, 1024]) {\n%y: f32[4096, 1024] = softmax(%x) {dim = 1}\nreturn %y\n}", threads, 4096.0 * 1024, "Gelements/s");
    time_run("softmax over 0, 1024 x 4096", "graph @main (%x: f32[1024, 4096]) {\n%y: f32[1024, 4096] = softmax(%x) {dim = 0}\nreturn %y\n}", threads, 4096.0 * 1024, "Gelements/s");
    time_run("sum of all, 4096 x 4096", "graph @main (%x: f32[4096, 4096]) {\n%y: f32[] = sum(%x) {dim = [0, 1], keepdim = false}\nreturn %y\n}", threads, 4096.0 * 4096 * 4, "GB/s");
    time_run("sum over 0, 4096 x 4096", "graph @main (%x: f32[4096, 4096]) {\n%y: f32[4096] = sum(%x) {dim = [0], keepdim = false}\nreturn %y\n}", threads, 4096.0 * 4096 * 4, "GB/s");
    time_run("sum over 1, 4096 x 4096", "graph @main (%x: f32[4096, 4096]) {\n%y: f32[4096] = sum(%x) {dim = [1], keepdim = false}\nreturn %y\n}", threads, 4096.0 * 4096 * 4, "GB/s");
    time_run("transpose, 2048 x 2048", "graph @main (%x: f32[2048, 2048]) {\n%y: f32[2048, 2048] = permute(%x) {dims = [1, 0]}\nreturn %y\n}", threads, 2.0 * 2048 * 2048 * 4, "GB/s");
    time_run("exp, 1M", "graph @main (%x: f32[1048576]) {\n%y: f32[1048576] = exp(%x)\nreturn %y\n}", threads, 1048576.0, "Gelements/s");
    time_run("tanh, 1M", "graph @main (%x: f32[1048576]) {\n%y: f32[1048576] = tanh(%x)\nreturn %y\n}", threads, 1048576.0, "Gelements/s");
    time_run("sin, 1M", "graph @main (%x: f32[1048576]) {\n%y: f32[1048576] = sin(%x)\nreturn %y\n}", threads, 1048576.0, "Gelements/s");
  }
  for (int n : {64, 128, 256, 512, 1024, 2048})
    for (int threads : {1, 2}) {
      const std::string text = fmt::format("graph @main (%x: f32[{0}, {0}], %y: f32[{0}, {0}]) {{\n%z: f32[{0}, {0}] = mm(%x, %y)\nreturn %z\n}}", n);
      time_run(fmt::format("mm {}^3", n).c_str(), text, threads, 2.0 * n * n * n, "GFLOP/s");
    }
  time_run("mm 512^3, f64", "graph @main (%x: f64[512, 512], %y: f64[512, 512]) {\n%z: f64[512, 512] = mm(%x, %y)\nreturn %z\n}", 1, 2.0 * 512 * 512 * 512, "GFLOP/s");
  time_run("mm 512^3 as a loop nest", "graph @main (%x: f32[512, 512], %y: f32[512, 512]) {\n%z: f32[512, 512] = mm(%x, %y)\nreturn %z\n}", 1, 2.0 * 512 * 512 * 512, "GFLOP/s", {.matrix_kernels = false});
  time_run("linear 64 x 784 to 512", "graph @main (%x: f32[64, 784], %w: f32[512, 784]) {\n%t: f32[784, 512] = permute(%w) {dims = [1, 0]}\n%z: f32[64, 512] = mm(%x, %t)\nreturn %z\n}", 1, 2.0 * 64 * 784 * 512, "GFLOP/s");
}
