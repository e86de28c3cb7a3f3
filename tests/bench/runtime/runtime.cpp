// What a call and a compile cost besides the kernels: a backend that does nothing stands for them. Prints one JSON object.
#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <cstdio>
#include <vector>

#include "core/ir/buffer.h"
#include "unit/host/devices/mock_session.h"
#include "unit/host/test_backend.h"

using namespace tenon;
using namespace tenon::test;
using Clock = std::chrono::steady_clock;

namespace {

double nanoseconds_since(Clock::time_point start) { return std::chrono::duration<double, std::nano>(Clock::now() - start).count(); }

/// The median over blocks of the time of one iteration.
template <class Body>
double nanoseconds(int iterations, const Body& body) {
  std::vector<double> blocks;
  for (int block = 0; block < 15; ++block) {
    const auto start = Clock::now();
    for (int i = 0; i < iterations; ++i) body();
    blocks.push_back(nanoseconds_since(start) / iterations);
  }
  std::nth_element(blocks.begin(), blocks.begin() + 7, blocks.end());
  return blocks[7];
}

std::int32_t claim_singly(const GraphView& graph, const TenonClaims& claims, std::uint32_t every) {
  for (NodeView node : graph.nodes()) {
    const std::uint32_t id = node.id();
    if (id % every == 0) claims.claim(claims.self, &id, 1);
  }
  return TENON_OK;
}

std::string chain(const std::string& shape, int nodes, const std::string& symbols = "") {
  std::string text = "graph @chain " + symbols + "(%v0: f32[" + shape + "]) {\n";
  for (int i = 1; i <= nodes; ++i) text += "  %v" + std::to_string(i) + ": f32[" + shape + "] = add(%v" + std::to_string(i - 1) + ", %v" + std::to_string(i / 2) + ")\n";
  return text + "  return %v" + std::to_string(nodes) + "\n}\n";
}

Behaviour idle(std::uint32_t every) {
  Behaviour behaviour;
  behaviour.execute = [](const ir::Graph&, const TenonExecuteArgs&) { return std::int32_t{TENON_OK}; };
  if (every) behaviour.claim = [every](const GraphView& graph, const TenonClaims& claims) { return claim_singly(graph, claims, every); };
  return behaviour;
}

/// One run of a program whose steps do nothing.
double run_nanoseconds(const std::string& text, std::uint32_t every, std::vector<std::int64_t> symbols) {
  TestBackend backend("idle", idle(every));
  TestSession session({&backend});
  TestProgram program(session, parse(text), {});
  alignas(64) static float memory[2][1024];
  const void* inputs[] = {memory[0]};
  void* outputs[] = {memory[1]};
  TenonRunArgs args{};
  args.struct_size = sizeof args;
  args.inputs = inputs;
  args.outputs = outputs;
  args.symbols = symbols.data();
  return nanoseconds(20000, [&] { tenon_program_run(program.get(), &args); });
}

/// One run of ten steps on the mock device, whose stream is held: the work is given and not begun.
double device_run_nanoseconds() {
  std::string text = chain("16", 10);
  for (std::size_t at = 0; (at = text.find("f32[16]", at)) != std::string::npos; at += 8) text.insert(at + 7, " on device12:0");
  MockSession session;
  const TestProgram program = session.compile(text, R"({"mock_device":{"single_nodes":true}})");
  const DeviceTensor x(session, DType::f32, {16}), y(session, DType::f32, {16});
  const Held held;
  std::vector<double> blocks;
  for (int block = 0; block < 15; ++block) {
    mock::MockDevices::get().drain();
    const auto start = Clock::now();
    for (int i = 0; i < 200; ++i) test::run(program, {x.data()}, {y.data()});
    blocks.push_back(nanoseconds_since(start) / 200);
  }
  std::nth_element(blocks.begin(), blocks.begin() + 7, blocks.end());
  return blocks[7];
}

double compile_milliseconds(const ir::Graph& graph, std::uint32_t every) {
  std::vector<double> times;
  for (int i = 0; i < 5; ++i) {
    TestBackend backend("idle", idle(every)), fallback("fallback", idle(0));
    TestSession session({&backend, &fallback});
    const auto start = Clock::now();
    TestProgram program(session, graph, {"idle"});
    times.push_back(nanoseconds_since(start) / 1e6);
  }
  return *std::min_element(times.begin(), times.end());
}

}  // namespace

int main() {
  nlohmann::json report;
  const double kernel = nanoseconds(20000, [] { asm volatile("" ::: "memory"); });
  report["run_one_step_ns"] = run_nanoseconds(chain("16", 1), 0, {}) - kernel;
  report["run_one_step_symbolic_ns"] = run_nanoseconds(chain("s0", 1, "[s0: 1..64] "), 0, {16}) - kernel;
  report["run_ten_steps_ns"] = run_nanoseconds(chain("16", 10), 1, {}) - kernel;
  report["run_ten_steps_on_device_ns"] = device_run_nanoseconds();
  const ir::Graph large = parse(chain("16", 5000));
  report["compile_5000_nodes_one_group_ms"] = compile_milliseconds(large, 0);
  report["compile_5000_nodes_every_second_ms"] = compile_milliseconds(large, 2);
  report["pool_1k_ns"] = nanoseconds(20000, [] { tenon_pool_release(tenon_pool_allocate(1024), 1024); });
  report["pool_64m_ns"] = nanoseconds(20000, [] { tenon_pool_release(tenon_pool_allocate(64u << 20), 64u << 20); });
  report["parallel_for_ns"] = nanoseconds(2000, [] { tenon_parallel_for(0, 2, 1, [](void*, std::int64_t, std::int64_t) {}, nullptr); });
  std::puts(report.dump().c_str());
}
