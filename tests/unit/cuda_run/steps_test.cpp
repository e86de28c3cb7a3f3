// What the logs say of a group on a card: its steps, and the code of each as PTX.
#include <algorithm>
#include <string>
#include <vector>

#include "card_session.h"

using namespace tenon;
using namespace tenon::test;

namespace {

struct SaidLine {
  std::string log, plugin, text;
};

void keep_line(void* lines, const char* log, const char* plugin, const char* text) { static_cast<std::vector<SaidLine>*>(lines)->push_back({log, plugin, text}); }

constexpr const char* kScaledRows = R"(graph @g (%x: f32[64, 4096] on device2:0) {
  %y: f32[64, 4096] on device2:0 = mul(%x, 2)
  %m: f32[64, 1] on device2:0 = amax(%y) {dim = [1], keepdim = true}
  %s: f32[] on device2:0 = sum(%m)
  return %m, %s
}
)";

}  // namespace

TEST_CASE("steps are said with their nodes, then the PTX of the functions that they name") {
  std::vector<SaidLine> lines;
  CudaSession session;
  require_ok(tenon_session_on_log(session.get(), "steps,kernel_code", keep_line, &lines));
  const TestProgram program = session.compile(kScaledRows);
  require_ok(tenon_session_on_log(session.get(), nullptr, nullptr, nullptr));
  std::vector<std::string> ops;
  std::size_t steps = 0, alive = 0;
  std::string ptx;
  std::vector<std::string> kernels;
  for (const SaidLine& line : lines) {
    if (line.plugin != "cuda") continue;
    if (line.log == "kernel_code") {
      ptx += line.text;
      continue;
    }
    CHECK(ptx.empty());
    const nlohmann::json said = nlohmann::json::parse(line.text);
    if (said.contains("alive")) {
      alive = said["alive"].size();
      continue;
    }
    CHECK(said["step"] == steps++);
    CHECK(said["kind"] == "kernel");
    kernels.push_back(said["kernel"]);
    CHECK_THAT(said["loops"].get<std::string>(), Catch::Contains("kernel"));
    for (const nlohmann::json& node : said["nodes"]) ops.push_back(node["op"]);
  }
  REQUIRE(steps > 0);
  CHECK(alive == steps);
  for (const char* op : {"amax", "sum"}) CHECK(std::ranges::find(ops, op) != ops.end());
  for (const std::string& kernel : kernels) CHECK_THAT(ptx, Catch::Contains(".visible .entry " + kernel + "("));
  CHECK_THAT(kernels.at(0), Catch::StartsWith("fused_mul_amax_"));
}

TEST_CASE("times of steps are those of the card's events") {
  std::vector<SaidLine> lines;
  CudaSession session;
  require_ok(tenon_session_on_log(session.get(), "steps,kernel_times", keep_line, &lines));
  const std::size_t graphs = fake_cuda_graphs();
  {
    const TestProgram program = session.compile(kScaledRows);
    Block x(session, 64 * 4096 * 4), m(session, 64 * 4), s(session, 4);
    const std::size_t before = fake_cuda_launches();
    require_ok(run(program, {x.at()}, {m.at(), s.at()}));
    require_ok(tenon_session_on_log(session.get(), nullptr, nullptr, nullptr));
    std::vector<std::string> names, timed;
    for (const SaidLine& line : lines) {
      if (line.plugin != "cuda") continue;
      const nlohmann::json said = nlohmann::json::parse(line.text);
      if (line.log == "steps" && said.contains("name")) names.push_back(said["name"]);
      if (line.log != "kernel_times") continue;
      timed.push_back(said["name"]);
      CHECK(said["us"].get<double>() == Approx(2));  // each runs once
      CHECK(said["bytes"].get<double>() >= 64 * 4 + 4);
      CHECK(said["flops"].get<double>() >= 64);
    }
    CHECK_FALSE(timed.empty());
    CHECK(timed == names);
    CHECK(fake_cuda_launches() - before == timed.size());
  }
  CHECK(fake_cuda_graphs() == graphs);
}

TEST_CASE("a timed run that fails gives back what it has made") {
  CudaSession session;
  std::vector<SaidLine> lines;
  require_ok(tenon_session_on_log(session.get(), "kernel_times", keep_line, &lines));
  const TestProgram program = session.compile(kScaledRows);
  Block x(session, 64 * 4096 * 4), m(session, 64 * 4), s(session, 4);
  const std::size_t graphs = fake_cuda_graphs();
  for (const char* function : {"cuEventCreate", "cuGraphCreate", "cuGraphAddEventRecordNode", "cuGraphAddKernelNode_v2", "cuGraphInstantiateWithFlags", "cuGraphLaunch", "cuEventElapsedTime"}) {
    fake_cuda_fail_in(function, 0, 1, false);
    CHECK(run(program, {x.at()}, {m.at(), s.at()}) != TENON_OK);
    fake_cuda_fail(-1, 0);
    CHECK(fake_cuda_graphs() == graphs);
    CHECK(run(program, {x.at()}, {m.at(), s.at()}) == TENON_OK);
  }
  require_ok(tenon_session_on_log(session.get(), nullptr, nullptr, nullptr));
}

TEST_CASE("weights are laid out beside the convolution before the one that reads them") {
  std::vector<SaidLine> lines;
  CudaSession session;
  require_ok(tenon_session_on_log(session.get(), "steps", keep_line, &lines));
  const TestProgram program = session.compile(R"(graph @g (%x: f32[2, 16, 16, 32] on device2:0, %v: f32[32, 32, 3, 3] on device2:0, %w: f32[48, 32, 3, 3] on device2:0) {
  %p: f32[32, 3, 3, 32] on device2:0 = permute(%v) {dims = [0, 2, 3, 1]}
  %a: f32[2, 16, 16, 32] on device2:0 = convolution_channels_last(%x, %p) {padding = [1, 1], stride = [1, 1]}
  %r: f32[2, 16, 16, 32] on device2:0 = relu(%a)
  %q: f32[48, 3, 3, 32] on device2:0 = permute(%w) {dims = [0, 2, 3, 1]}
  %b: f32[2, 16, 16, 48] on device2:0 = convolution_channels_last(%r, %q) {padding = [1, 1], stride = [1, 1]}
  return %b
}
)");
  require_ok(tenon_session_on_log(session.get(), nullptr, nullptr, nullptr));
  std::string order;
  for (const SaidLine& line : lines)
    if (const nlohmann::json said = nlohmann::json::parse(line.text); said.contains("kernel")) order += said["kernel"].get<std::string>().starts_with("permute_") ? "l" : "c";
  CHECK(order == "llcc");
}
