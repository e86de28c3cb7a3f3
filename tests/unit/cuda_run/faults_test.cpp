// Calls of the driver that fail, one kind after the other: by function and by code. Whatever fails is told or does no harm, and what runs next is right.
#include <cstring>
#include <set>

#include "card_session.h"

using namespace tenon;
using namespace tenon::test;

namespace {

/// What runs once a card is there.
constexpr const char* kFunctions[] = {
    "cuStreamIsCapturing", "cuCtxGetCurrent", "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2", "cuMemAllocAsync", "cuMemFreeAsync", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2",
    "cuMemcpyDtoDAsync_v2", "cuStreamCreate", "cuStreamDestroy_v2", "cuStreamSynchronize", "cuStreamWaitEvent", "cuEventCreate", "cuEventRecord", "cuEventQuery",
    "cuEventSynchronize", "cuEventDestroy_v2", "cuModuleLoadDataEx", "cuModuleUnload", "cuModuleGetFunction", "cuGraphCreate", "cuGraphDestroy", "cuGraphAddKernelNode_v2",
    "cuGraphAddDependencies_v2", "cuGraphInstantiateWithFlags", "cuGraphExecKernelNodeSetParams_v2", "cuGraphLaunch", "cuGraphExecDestroy", "cuLaunchKernel",
};

/// An invalid value, memory that is used up; an illegal address, an assertion, a failed launch: after these the card is lost to the process.
constexpr int kInvalidValue = 1, kOutOfMemory = 2;
constexpr int kSticky[] = {700, 710, 719};

constexpr std::size_t kRows = 64, kColumns = 32, kTensorBytes = kRows * kColumns * 4;

/// Kernels that wait for each other, with what lies in the host's memory before and behind them.
constexpr const char* kProgram = R"(graph @g (%x: f32[64, 32] on device2:0, %h: f32[64, 32]) {
  %i: f32[64, 32] on device2:0 = to_device(%h) {device = "device2:0"}
  %a: f32[64, 32] on device2:0 = softmax(%x) {dim = 1}
  %b: f32[64, 32] on device2:0 = softmax(%i) {dim = 0}
  %c: f32[64, 32] on device2:0 = softmax(%a) {dim = 0}
  %d: f32[64, 32] on device2:0 = add(%b, %c)
  %e: f32[64, 32] = to_device(%d) {device = "cpu:0"}
  return %d, %e, update %x = %c
}
)";

/// Compiles and runs, with memory that moves, and on a stream that is captured. Gives the words of what failed first; empty where nothing did.
std::string failure_of_run() {
  try {
    CudaSession session;
    const TestProgram program = session.compile(kProgram);
    const Block x(session, kTensorBytes), d(session, kTensorBytes), other(session, kTensorBytes);
    std::vector<float> h(kRows * kColumns, 1), e(kRows * kColumns);
    require_ok(tenon_device_copy(session.get(), x.at(), kCard, h.data(), {kDLCPU, 0}, kTensorBytes));
    require_ok(tenon_device_copy(session.get(), other.at(), kCard, x.at(), kCard, kTensorBytes));
    for (void* to : {d.at(), d.at(), other.at()}) require_ok(run(program, {x.at(), h.data()}, {to, e.data(), x.at()}));
    fake_cuda_capture(true);
    const std::int32_t captured = run(program, {x.at(), h.data()}, {d.at(), e.data(), x.at()});
    fake_cuda_capture(false);
    require_ok(captured);
    require_ok(tenon_device_synchronise(session.get(), kCard, nullptr));
  } catch (const Exception& failed) {
    fake_cuda_capture(false);
    return *failed.what() ? failed.what() : "no words";
  }
  return {};
}

/// Whether a failure of it leaves nothing else undone, so that a program may go on without a word.
bool only_gives_back(const std::string& function) {
  return function.find("Destroy") != std::string::npos || function.find("Free") != std::string::npos || function.find("Unload") != std::string::npos || function.find("Pop") != std::string::npos;
}

}  // namespace

TEST_CASE("forty kinds of failures of the driver are contained", "[faults]") {
  REQUIRE(failure_of_run() == "");  // loads the plugin, and asks the driver what is asked once
  std::set<std::pair<std::string, int>> met, told;
  for (const std::string function : kFunctions)
    for (const int code : {kInvalidValue, kOutOfMemory, kSticky[0], kSticky[1], kSticky[2]}) {
      INFO(function << " gives " << code);
      const std::size_t modules = fake_cuda_modules(), blocks = fake_cuda_blocks(), graphs = fake_cuda_graphs();
      const bool lost = std::ranges::find(kSticky, code) != std::end(kSticky);
      fake_cuda_fail_in(function.c_str(), 0, code, lost);
      const std::string words = failure_of_run();
      const std::size_t failures = fake_cuda_failures();
      fake_cuda_fail(-1, 0);
      if (failures == 0) continue;
      met.emplace(function, code);
      if (!words.empty()) told.emplace(function, code);
      if (!words.empty() && !only_gives_back(function)) CHECK_THAT(words, Catch::Contains("failed: CUDA_ERROR"));
      CHECK(failure_of_run() == "");
      if (only_gives_back(function)) continue;  // what the driver keeps is its own
      CHECK(fake_cuda_modules() == modules);
      CHECK(fake_cuda_blocks() == blocks);
      CHECK(fake_cuda_graphs() == graphs);
    }
  CHECK(met.size() >= 40);
  CHECK(told.size() >= 40);
}

TEST_CASE("a failure that loses the card says what the card was given last, with its line and its shapes", "[faults]") {
  CudaSession session;
  const TestProgram program = session.compile("graph @g (%x: f32[64, 32] on device2:0) {\n  %y: f32[64, 32] on device2:0 = relu(%x) @ \"net.py\":12 \"forward\" \"x.relu()\"\n  return %y\n}\n");
  const Block x(session, kTensorBytes), y(session, kTensorBytes);
  fake_cuda_fail_in("cuGraphLaunch", 0, kSticky[0], false);
  for (int call = 0; call < 2; ++call) {
    CHECK(run(program, {x.at()}, {y.at()}) == TENON_DEVICE_LOST);
    CHECK_THAT(tenon_last_error()->text, Catch::Contains("cuGraphLaunch failed") && Catch::Contains("the last work that it was given: relu of net.py:12, from f32[64, 32]"));
  }
}
