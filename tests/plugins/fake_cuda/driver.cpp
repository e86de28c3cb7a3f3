#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "driver/functions.h"
#include "fake_cuda.h"

using namespace tenon::cuda;

struct tenon::cuda::CUfunc_st {
  std::size_t parameters = 0;  // each of 8 bytes
};
struct tenon::cuda::CUmod_st {
  std::map<std::string, CUfunc_st> functions;
};

namespace {

constexpr CUresult kInvalid = 1, kNotFound = 500;

struct State {
  std::mutex mutex;
  std::map<CUdeviceptr, std::size_t> blocks;
  std::set<CUmodule> modules;
  std::size_t launches = 0;
  int contexts = 0;  // pushed and not popped
  int calls_left = -1, failure = 0;
  std::string complaint;
};

State& state() {
  static State& state = *new State;
  return state;
}

CUresult wrong(std::string what) {
  state().complaint = std::move(what);
  return kInvalid;
}

/// The failure that a test asked for, on its turn.
CUresult turn() {
  State& s = state();
  if (s.calls_left < 0) return kSuccess;
  return s.calls_left-- == 0 ? s.failure : kSuccess;
}

/// Whether all the bytes lie in one block.
bool is_allocated(CUdeviceptr address, std::size_t bytes) {
  const auto& blocks = state().blocks;
  auto after = blocks.upper_bound(address);
  return after != blocks.begin() && address + bytes <= (--after)->first + after->second;
}

CUresult copy(void* to, const void* from, CUdeviceptr on_card, std::size_t bytes) {
  const std::lock_guard lock(state().mutex);
  if (const CUresult failed = turn()) return failed;
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

/// The kernels of a text.
std::map<std::string, CUfunc_st> functions_of(const std::string& ptx) {
  std::map<std::string, CUfunc_st> found;
  const std::string entry = ".entry ";
  for (std::size_t at = ptx.find(entry); at != std::string::npos;) {
    const std::size_t next = ptx.find(entry, at + 1), name = at + entry.size(), list = ptx.find('(', name), end = ptx.find(')', list);
    const std::string parameters = ptx.substr(list, end - list);
    CUfunc_st& function = found[ptx.substr(name, list - name)];
    for (std::size_t p = parameters.find(".param"); p != std::string::npos; p = parameters.find(".param", p + 1)) ++function.parameters;
    at = next;
  }
  return found;
}

/// Sizes are small in tests: what is large is an address.
constexpr std::uint64_t kFirstAddress = 1 << 20;

CUresult launch(const CUfunc_st& function, unsigned blocks, unsigned threads, void** parameters) {
  const std::lock_guard lock(state().mutex);
  if (const CUresult failed = turn()) return failed;
  if (state().contexts == 0) return wrong("a launch without a context");
  if (blocks == 0 || threads == 0 || threads > 1024) return wrong("a launch of " + std::to_string(blocks) + " blocks of " + std::to_string(threads) + " threads");
  for (std::size_t i = 0; i < function.parameters; ++i) {
    std::uint64_t value = 0;
    std::memcpy(&value, parameters[i], sizeof value);
    if (value < kFirstAddress) continue;
    if (!is_allocated(value, 1)) return wrong("parameter " + std::to_string(i) + " of a kernel, " + std::to_string(value) + ", is memory that is not allocated");
  }
  ++state().launches;
  return kSuccess;
}

}  // namespace

std::size_t fake_cuda_launches() { return state().launches; }
std::size_t fake_cuda_modules() { return state().modules.size(); }
std::size_t fake_cuda_blocks() { return state().blocks.size(); }
const char* fake_cuda_complaint() { return state().complaint.c_str(); }
void fake_cuda_fail(int n, int code) {
  const std::lock_guard lock(state().mutex);
  state().calls_left = n, state().failure = code;
}

extern "C" {

CUresult cuInit(unsigned) { return kSuccess; }
CUresult cuDriverGetVersion(int* version) { return *version = 13000, kSuccess; }
CUresult cuGetErrorName(CUresult code, const char** name) { return *name = code == kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR", kSuccess; }
CUresult cuGetErrorString(CUresult, const char** text) { return *text = fake_cuda_complaint(), kSuccess; }
CUresult cuDeviceGetCount(int* count) { return *count = 1, kSuccess; }
CUresult cuDeviceGet(CUdevice* device, int ordinal) { return *device = ordinal, ordinal == 0 ? kSuccess : kInvalid; }
CUresult cuDeviceGetName(char* name, int bytes, CUdevice) { return std::strncpy(name, "a card that is none", static_cast<std::size_t>(bytes)), kSuccess; }
CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice) { return *bytes = std::size_t{1} << 30, kSuccess; }
CUresult cuDeviceGetAttribute(int* value, int attribute, CUdevice) { return *value = attribute == kMajor ? 9 : attribute == kMinor ? 0 : 1, kSuccess; }
CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice) { return *pool = nullptr, kSuccess; }
CUresult cuMemPoolSetAttribute(CUmemoryPool, int, void*) { return kSuccess; }

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice) { return *context = nullptr, kSuccess; }
CUresult cuCtxPushCurrent_v2(CUcontext) {
  const std::lock_guard lock(state().mutex);
  return ++state().contexts, kSuccess;
}
CUresult cuCtxPopCurrent_v2(CUcontext*) {
  const std::lock_guard lock(state().mutex);
  return --state().contexts, kSuccess;
}
CUresult cuCtxSynchronize() { return kSuccess; }

CUresult cuMemAllocAsync(CUdeviceptr* memory, std::size_t bytes, CUstream) {
  const std::lock_guard lock(state().mutex);
  if (const CUresult failed = turn()) return failed;
  *memory = reinterpret_cast<CUdeviceptr>(std::aligned_alloc(256, (bytes + 255) & ~std::size_t{255}));
  return state().blocks[*memory] = bytes, kSuccess;
}
CUresult cuMemFreeAsync(CUdeviceptr memory, CUstream) {
  const std::lock_guard lock(state().mutex);
  if (state().blocks.erase(memory) == 0) return wrong("memory is freed that is not allocated");
  return std::free(reinterpret_cast<void*>(memory)), kSuccess;
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes, CUstream) { return copy(reinterpret_cast<void*>(to), from, to, bytes); }
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes, CUstream) { return copy(to, reinterpret_cast<const void*>(from), from, bytes); }
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream) {
  return copy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), from, bytes);
}
CUresult cuMemcpyPeerAsync(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, std::size_t, CUstream) { return wrong("there is one card"); }
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t count, CUstream) { return fill(to, value, count); }
CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, std::size_t count, CUstream) { return fill(to, value, count); }
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, std::size_t count, CUstream) { return fill(to, value, count); }

CUresult cuStreamCreate(CUstream* stream, unsigned) { return *stream = reinterpret_cast<CUstream>(new char), kSuccess; }
CUresult cuStreamDestroy_v2(CUstream stream) { return delete reinterpret_cast<char*>(stream), kSuccess; }
CUresult cuStreamSynchronize(CUstream) { return kSuccess; }
CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned) { return kSuccess; }
CUresult cuEventCreate(CUevent* event, unsigned) { return *event = reinterpret_cast<CUevent>(new char), kSuccess; }
CUresult cuEventRecord(CUevent, CUstream) { return kSuccess; }
CUresult cuEventQuery(CUevent) { return kSuccess; }
CUresult cuEventSynchronize(CUevent) { return kSuccess; }
CUresult cuEventDestroy_v2(CUevent event) { return delete reinterpret_cast<char*>(event), kSuccess; }

CUresult cuModuleLoadDataEx(CUmodule* module, const void* text, unsigned, int*, void**) {
  const std::lock_guard lock(state().mutex);
  if (const CUresult failed = turn()) return failed;
  *module = new CUmod_st{functions_of(static_cast<const char*>(text))};
  return state().modules.insert(*module), kSuccess;
}
CUresult cuModuleUnload(CUmodule module) {
  const std::lock_guard lock(state().mutex);
  if (state().modules.erase(module) == 0) return wrong("a module is unloaded that is not there");
  return delete module, kSuccess;
}
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  const auto found = module->functions.find(name);
  if (found == module->functions.end()) return kNotFound;
  return *function = &found->second, kSuccess;
}
CUresult cuLaunchKernel(CUfunction function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned, unsigned, unsigned, CUstream, void** parameters, void**) {
  return launch(*function, x * y * z, threads, parameters);
}

}  // extern "C"
