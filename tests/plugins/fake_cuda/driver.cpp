#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "driver/functions.h"
#include "fake_cuda.h"
#include "parameters.h"

using namespace tenon::cuda;

struct tenon::cuda::CUmod_st {
  std::map<std::string, CUfunc_st> functions;
};
/// A launch with the arguments that it was given last.
struct FakeLaunch {
  const CUfunc_st* function = nullptr;
  unsigned blocks = 0, threads = 0, shared_bytes = 0;
  std::vector<std::uint64_t> values;
};
struct tenon::cuda::CUevent_st {
  double microseconds = 0;  // when it was recorded last
};
struct tenon::cuda::CUgraphNode_st {
  FakeLaunch launch;  // without a function where the node records an event
  std::set<CUgraphNode> before;
  CUevent event = nullptr;
};
struct tenon::cuda::CUgraph_st {
  std::vector<CUgraphNode> nodes;
};
struct tenon::cuda::CUgraphExec_st {
  std::map<CUgraphNode, FakeLaunch> launches;
  std::vector<CUgraphNode> order;
  std::map<CUgraphNode, std::set<CUgraphNode>> behind;  // all that have ended when a node starts
};
struct tenon::cuda::CUctx_st {};

namespace {

constexpr double kLaunchMicroseconds = 2;
constexpr CUresult kInvalid = 1, kNoBinary = 200, kNotFound = 500;

struct State {
  std::mutex mutex;
  std::map<CUdeviceptr, std::size_t> blocks;
  std::map<std::size_t, std::vector<CUdeviceptr>> freed;  // by size: the last one is taken first, as from the driver's pool
  std::size_t bytes = 0, most_bytes = 0;
  std::set<CUmodule> modules;
  std::string texts, told_texts;  // of modules
  std::size_t launches = 0;
  double microseconds = 0;  // that launches took
  std::set<CUgraph> graphs;
  std::set<CUgraphExec> executables;
  std::size_t graph_launches = 0, hazards = 0, set_nodes = 0, longest_path = 0;
  bool capturing = false;
  std::string complaint;
};

/// The failure that a test asked for.
struct Fault {
  std::mutex mutex;
  std::string function;  // empty: of any that acts
  int calls_left = -1, code = 0;
  bool stays = false;    // and of all that act from then on
  std::size_t met = 0;
};

CUctx_st the_context;
thread_local std::vector<CUcontext> current_contexts;

State& state() {
  static State& state = *new State;
  return state;
}

CUresult wrong(std::string what) {
  state().complaint = std::move(what);
  return kInvalid;
}

Fault& fault() {
  static Fault& fault = *new Fault;
  return fault;
}

/// What a call of the function gives instead of acting, on its turn.
CUresult turn(const char* function, bool acts) {
  Fault& f = fault();
  const std::lock_guard lock(f.mutex);
  if (f.calls_left < 0) return f.stays && f.met > 0 && acts ? f.code : kSuccess;
  if (f.function.empty() ? !acts : f.function != function) return kSuccess;
  if (f.calls_left-- > 0) return kSuccess;
  ++f.met;
  return f.code;
}

/// Leaves a function on its turn to fail.
#define FAIL_ON_TURN \
  if (const CUresult failed = turn(__func__, false)) return failed
/// Likewise one that allocates, copies, loads or launches.
#define FAIL_ON_TURN_TO_ACT \
  if (const CUresult failed = turn(__func__, true)) return failed

/// Whether all the bytes lie in one block.
bool is_allocated(CUdeviceptr address, std::size_t bytes) {
  const auto& blocks = state().blocks;
  auto after = blocks.upper_bound(address);
  return after != blocks.begin() && address + bytes <= (--after)->first + after->second;
}

CUresult copy(void* to, const void* from, CUdeviceptr on_card, std::size_t bytes) {
  const std::lock_guard lock(state().mutex);
  if (!is_allocated(on_card, bytes)) return wrong("a copy reaches memory that is not allocated");
  std::memmove(to, from, bytes);
  return kSuccess;
}

template <class Word>
CUresult fill(CUdeviceptr to, Word word, std::size_t count) {
  const std::lock_guard lock(state().mutex);
  if (!is_allocated(to, count * sizeof word)) return wrong("a fill reaches memory that is not allocated");
  std::fill_n(reinterpret_cast<Word*>(to), count, word);
  return kSuccess;
}

FakeLaunch launch_of(const CUfunc_st& function, unsigned blocks, unsigned threads, unsigned shared_bytes, void** parameters) {
  FakeLaunch launch{&function, blocks, threads, shared_bytes, std::vector<std::uint64_t>(function.parameters.size())};
  for (std::size_t i = 0, p = 0; i < launch.values.size(); ++p) {
    const std::size_t count = p == 0 ? function.in_first : 1;
    std::memcpy(&launch.values[i], parameters[p], count * sizeof(std::uint64_t));
    i += count;
  }
  return launch;
}

FakeLaunch launch_of(const CUkernelNode& node) { return launch_of(*node.function, node.blocks[0] * node.blocks[1] * node.blocks[2], node.threads[0], node.shared_bytes, node.parameters); }

/// With the lock.
CUresult launch(const FakeLaunch& launch) {
  if (current_contexts.empty()) return wrong("a launch without a context");
  if (launch.blocks == 0 || launch.threads == 0 || launch.threads > 1024) return wrong("a launch of " + std::to_string(launch.blocks) + " blocks of " + std::to_string(launch.threads) + " threads");
  if (launch.shared_bytes > launch.function->most_shared_bytes) return wrong("a launch gives a block " + std::to_string(launch.shared_bytes) + " bytes of shared memory that its kernel was not set for");
  for (std::size_t i = 0; i < launch.values.size(); ++i) {
    const FakeParameter& p = launch.function->parameters[i];
    if (p.kind == FakeParameter::Kind::value || p.bytes == 0) continue;
    const std::uint64_t value = launch.values[i];
    const std::string name = "parameter " + std::to_string(i) + " of a kernel, " + std::to_string(value) + ", ";
    if (!is_allocated(p.begin(value), p.bytes)) return wrong(name + "is memory that is not allocated: " + std::to_string(p.bytes) + " bytes");
    if (value % p.alignment != 0) return wrong(name + "is not aligned to " + std::to_string(p.alignment) + " bytes");
  }
  ++state().launches;
  state().microseconds += kLaunchMicroseconds;
  return kSuccess;
}

/// Whether one writes what the other touches.
bool disagree(const FakeLaunch& a, const FakeLaunch& b) {
  for (std::size_t i = 0; i < a.values.size(); ++i)
    for (std::size_t j = 0; j < b.values.size(); ++j) {
      const FakeParameter &p = a.function->parameters[i], &q = b.function->parameters[j];
      if (p.kind == FakeParameter::Kind::value || q.kind == FakeParameter::Kind::value) continue;
      if (p.kind == FakeParameter::Kind::reads && q.kind == FakeParameter::Kind::reads) continue;
      const std::uint64_t mine = p.begin(a.values[i]), other = q.begin(b.values[j]);
      if (mine < other + q.bytes && other < mine + p.bytes) return true;
    }
  return false;
}

/// With the lock.
CUresult launch(const CUgraphExec_st& graph) {
  for (std::size_t i = 0; i < graph.order.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const CUgraphNode a = graph.order[i], b = graph.order[j];
      if (!graph.behind.at(a).contains(b) && disagree(graph.launches.at(a), graph.launches.at(b)))
        return ++state().hazards, wrong("nodes " + std::to_string(j) + " and " + std::to_string(i) + " of a graph may run at the same time, and one writes what the other touches");
    }
  for (const CUgraphNode node : graph.order) {
    if (node->event) node->event->microseconds = state().microseconds;
    else if (const CUresult failed = launch(graph.launches.at(node))) return failed;
  }
  ++state().graph_launches;
  return kSuccess;
}

}  // namespace

std::size_t fake_cuda_launches() { return state().launches; }
std::size_t fake_cuda_graph_launches() { return state().graph_launches; }
std::size_t fake_cuda_graphs() { return state().graphs.size() + state().executables.size(); }
std::size_t fake_cuda_set_nodes() { return state().set_nodes; }
std::size_t fake_cuda_longest_path() { return state().longest_path; }
std::size_t fake_cuda_hazards() { return state().hazards; }
void fake_cuda_capture(bool on) { state().capturing = on; }
std::size_t fake_cuda_modules() { return state().modules.size(); }
const char* fake_cuda_texts() {
  const std::lock_guard lock(state().mutex);
  state().told_texts = std::exchange(state().texts, {});
  return state().told_texts.c_str();
}
std::size_t fake_cuda_blocks() { return state().blocks.size(); }
std::size_t fake_cuda_most_bytes() { return std::exchange(state().most_bytes, state().bytes) - state().bytes; }
const char* fake_cuda_complaint() { return state().complaint.c_str(); }
void fake_cuda_fail(int n, int code) { fake_cuda_fail_in("", n, code, false); }
void fake_cuda_fail_in(const char* function, int n, int code, bool stays) {
  Fault& f = fault();
  const std::lock_guard lock(f.mutex);
  f.function = function, f.calls_left = n, f.code = code, f.stays = stays;
  if (n >= 0) f.met = 0;
}
std::size_t fake_cuda_failures() {
  const std::lock_guard lock(fault().mutex);
  return fault().met;
}

extern "C" {

CUresult cuInit(unsigned) { FAIL_ON_TURN; return kSuccess; }
CUresult cuDriverGetVersion(int* version) { FAIL_ON_TURN; return *version = 13000, kSuccess; }
CUresult cuGetErrorName(CUresult code, const char** name) { return *name = code == kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR", kSuccess; }
CUresult cuGetErrorString(CUresult, const char** text) { return *text = fake_cuda_complaint(), kSuccess; }
CUresult cuDeviceGetCount(int* count) { FAIL_ON_TURN; return *count = 1, kSuccess; }
CUresult cuDeviceGet(CUdevice* device, int ordinal) { FAIL_ON_TURN; return *device = ordinal, ordinal == 0 ? kSuccess : kInvalid; }
CUresult cuDeviceGetName(char* name, int bytes, CUdevice) { FAIL_ON_TURN; return std::strncpy(name, "a card that is none", static_cast<std::size_t>(bytes)), kSuccess; }
CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice) { FAIL_ON_TURN; return *bytes = std::size_t{1} << 30, kSuccess; }
CUresult cuDeviceGetAttribute(int* value, int attribute, CUdevice) { FAIL_ON_TURN; return *value = attribute == kMajor ? 9 : attribute == kMinor ? 0 : 1, kSuccess; }
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice) { FAIL_ON_TURN; return *pool = nullptr, kSuccess; }
CUresult cuMemPoolSetAttribute(CUmemoryPool, int, void*) { FAIL_ON_TURN; return kSuccess; }

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) { FAIL_ON_TURN; return *context = &the_context, kSuccess; }
CUresult cuCtxGetCurrent(CUcontext* context) { FAIL_ON_TURN; return *context = current_contexts.empty() ? nullptr : current_contexts.back(), kSuccess; }
CUresult cuCtxPushCurrent_v2(CUcontext context) { FAIL_ON_TURN; return current_contexts.push_back(context), kSuccess; }
CUresult cuCtxPopCurrent_v2(CUcontext*) { FAIL_ON_TURN; return current_contexts.pop_back(), kSuccess; }
CUresult cuCtxSynchronize() { FAIL_ON_TURN; return kSuccess; }

CUresult cuMemAllocAsync(CUdeviceptr* memory, std::size_t bytes, CUstream) {
  const std::lock_guard lock(state().mutex);
  FAIL_ON_TURN_TO_ACT;
  if (std::vector<CUdeviceptr>& freed = state().freed[bytes]; freed.empty()) {
    *memory = reinterpret_cast<CUdeviceptr>(std::aligned_alloc(256, (bytes + 255) & ~std::size_t{255}));
  } else {
    *memory = freed.back();
    freed.pop_back();
  }
  state().most_bytes = std::max(state().most_bytes, state().bytes += bytes);
  return state().blocks[*memory] = bytes, kSuccess;
}
CUresult cuMemFreeAsync(CUdeviceptr memory, CUstream) {
  FAIL_ON_TURN;
  const std::lock_guard lock(state().mutex);
  const auto block = state().blocks.find(memory);
  if (block == state().blocks.end()) return wrong("memory is freed that is not allocated");
  state().bytes -= block->second;
  state().freed[block->second].push_back(memory);
  return state().blocks.erase(block), kSuccess;
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes, CUstream) { FAIL_ON_TURN_TO_ACT; return copy(reinterpret_cast<void*>(to), from, to, bytes); }
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes, CUstream) { FAIL_ON_TURN_TO_ACT; return copy(to, reinterpret_cast<const void*>(from), from, bytes); }
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream) { FAIL_ON_TURN_TO_ACT; return copy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), from, bytes); }
CUresult cuMemcpyPeerAsync(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, std::size_t, CUstream) { FAIL_ON_TURN_TO_ACT; return wrong("there is one card"); }
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t count, CUstream) { FAIL_ON_TURN; return fill(to, value, count); }
CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, std::size_t count, CUstream) { FAIL_ON_TURN; return fill(to, value, count); }
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, std::size_t count, CUstream) { FAIL_ON_TURN; return fill(to, value, count); }

CUresult cuStreamCreate(CUstream* stream, unsigned) { FAIL_ON_TURN; return *stream = reinterpret_cast<CUstream>(new char), kSuccess; }
CUresult cuStreamDestroy_v2(CUstream stream) { FAIL_ON_TURN; return delete reinterpret_cast<char*>(stream), kSuccess; }
CUresult cuStreamSynchronize(CUstream) { FAIL_ON_TURN; return kSuccess; }
CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned) { FAIL_ON_TURN; return kSuccess; }
CUresult cuEventCreate(CUevent* event, unsigned) { FAIL_ON_TURN; return *event = new CUevent_st, kSuccess; }
CUresult cuEventRecord(CUevent event, CUstream) {
  FAIL_ON_TURN;
  const std::lock_guard lock(state().mutex);
  return event->microseconds = state().microseconds, kSuccess;
}
CUresult cuEventElapsedTime(float* milliseconds, CUevent from, CUevent to) { FAIL_ON_TURN; return *milliseconds = static_cast<float>((to->microseconds - from->microseconds) / 1e3), kSuccess; }
CUresult cuEventQuery(CUevent) { FAIL_ON_TURN; return kSuccess; }
CUresult cuEventSynchronize(CUevent) { FAIL_ON_TURN; return kSuccess; }
CUresult cuEventDestroy_v2(CUevent event) { FAIL_ON_TURN; return delete event, kSuccess; }

CUresult cuModuleLoadDataEx(CUmodule* module, const void* text, unsigned, int*, void**) {
  const std::lock_guard lock(state().mutex);
  FAIL_ON_TURN_TO_ACT;
  if (std::memcmp(text, "\x7f" "ELF", 4) == 0) return kNoBinary;  // machine code of a real linker: the text is compiled instead
  state().texts += static_cast<const char*>(text);
  *module = new CUmod_st{functions_of(static_cast<const char*>(text))};
  return state().modules.insert(*module), kSuccess;
}
CUresult cuModuleUnload(CUmodule module) {
  FAIL_ON_TURN;
  const std::lock_guard lock(state().mutex);
  if (state().modules.erase(module) == 0) return wrong("a module is unloaded that is not there");
  return delete module, kSuccess;
}
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  FAIL_ON_TURN;
  const auto found = module->functions.find(name);
  if (found == module->functions.end()) return kNotFound;
  return *function = &found->second, kSuccess;
}
CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value) {
  FAIL_ON_TURN;
  constexpr int kMostOfACard = 99 * 1024;  // of those from sm_80 on, the least that one has for a block
  if (attribute != kMostSharedBytes || value > kMostOfACard) return wrong("an attribute of a function is set to " + std::to_string(value));
  return function->most_shared_bytes = static_cast<unsigned>(value), kSuccess;
}
CUresult cuLaunchKernel(CUfunction function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned, unsigned, unsigned shared_bytes, CUstream, void** parameters, void**) {
  const std::lock_guard lock(state().mutex);
  FAIL_ON_TURN_TO_ACT;
  return launch(launch_of(*function, x * y * z, threads, shared_bytes, parameters));
}

CUresult cuStreamIsCapturing(CUstream, int* capturing) { FAIL_ON_TURN; return *capturing = state().capturing ? 1 : 0, kSuccess; }
CUresult cuGraphCreate(CUgraph* graph, unsigned) {
  const std::lock_guard lock(state().mutex);
  FAIL_ON_TURN_TO_ACT;
  *graph = new CUgraph_st;
  return state().graphs.insert(*graph), kSuccess;
}
CUresult cuGraphDestroy(CUgraph graph) {
  FAIL_ON_TURN;
  const std::lock_guard lock(state().mutex);
  if (state().graphs.erase(graph) == 0) return wrong("a graph is destroyed that is not there");
  for (const CUgraphNode node : graph->nodes) delete node;
  return delete graph, kSuccess;
}
CUresult cuGraphAddKernelNode_v2(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, std::size_t count, const CUkernelNode* given) {
  const std::lock_guard lock(state().mutex);
  FAIL_ON_TURN_TO_ACT;
  *node = new CUgraphNode_st{launch_of(*given), std::set(before, before + count)};
  return graph->nodes.push_back(*node), kSuccess;
}
CUresult cuGraphAddEventRecordNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, std::size_t count, CUevent event) {
  const std::lock_guard lock(state().mutex);
  FAIL_ON_TURN_TO_ACT;
  *node = new CUgraphNode_st{{}, std::set(before, before + count), event};
  return graph->nodes.push_back(*node), kSuccess;
}
CUresult cuGraphAddDependencies_v2(CUgraph, const CUgraphNode* from, const CUgraphNode* to, const CUgraphEdge*, std::size_t count) {
  const std::lock_guard lock(state().mutex);
  FAIL_ON_TURN_TO_ACT;
  for (std::size_t i = 0; i < count; ++i) to[i]->before.insert(from[i]);
  return kSuccess;
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* made, CUgraph graph, unsigned long long) {
  const std::lock_guard lock(state().mutex);
  FAIL_ON_TURN_TO_ACT;
  auto* executable = new CUgraphExec_st{{}, graph->nodes, {}};
  std::map<CUgraphNode, std::size_t> ends;  // nodes on the longest path to this one, and with it
  state().longest_path = 0;
  for (const CUgraphNode node : graph->nodes) {
    for (const CUgraphNode before : node->before) ends[node] = std::max(ends[node], ends[before]);
    state().longest_path = std::max(state().longest_path, ++ends[node]);
    executable->launches[node] = node->launch;
    std::set<CUgraphNode>& behind = executable->behind[node];
    for (const CUgraphNode before : node->before) {
      behind.insert(before);
      const std::set<CUgraphNode>& further = executable->behind.at(before);
      behind.insert(further.begin(), further.end());
    }
  }
  state().executables.insert(executable);
  return *made = executable, kSuccess;
}
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec executable, CUgraphNode node, const CUkernelNode* given) {
  const std::lock_guard lock(state().mutex);
  FAIL_ON_TURN_TO_ACT;
  const auto found = executable->launches.find(node);
  if (found == executable->launches.end()) return wrong("a node of another graph is set");
  ++state().set_nodes;
  return found->second = launch_of(*given), kSuccess;
}
CUresult cuGraphLaunch(CUgraphExec executable, CUstream) {
  const std::lock_guard lock(state().mutex);
  FAIL_ON_TURN_TO_ACT;
  if (!state().executables.contains(executable)) return wrong("a graph is launched that is not there");
  return launch(*executable);
}
CUresult cuGraphExecDestroy(CUgraphExec executable) {
  FAIL_ON_TURN;
  const std::lock_guard lock(state().mutex);
  if (state().executables.erase(executable) == 0) return wrong("an executable graph is destroyed that is not there");
  return delete executable, kSuccess;
}

}  // extern "C"
