#include "machine.h"

#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <llvm/ADT/StringMap.h>
#include <llvm/TargetParser/Host.h>

#include <algorithm>
#include <vector>

namespace tenon::llvm_backend {
namespace {

/// The library stays loaded: generated code holds addresses of its functions.
void* vector_library() {
  static void* const library = dlopen("libmvec.so.1", RTLD_NOW | RTLD_LOCAL);
  return library;
}

/// Asks the kernel for the registers of tiles, whose state is large: a thread that uses them unasked is ended (Linux, Documentation/arch/x86/xstate.rst).
bool may_use_tiles() {
  constexpr long kRequest = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  static const bool permitted = syscall(SYS_arch_prctl, kRequest, kTileData) == 0;
  return permitted;
}

bool is_wider_than(const std::string& feature, unsigned bytes) {
  if (bytes < 64 && feature.rfind("avx512", 0) == 0) return true;
  static const std::vector<std::string> wide = {"avx", "avx2", "fma", "f16c", "vaes", "vpclmulqdq", "avxvnni", "gfni", "xop", "fma4", "evex512"};
  return bytes < 32 && std::find(wide.begin(), wide.end(), feature) != wide.end();
}

}  // namespace

void* vector_function(const char* name) { return vector_library() ? dlsym(vector_library(), name) : nullptr; }

Target detect_machine(unsigned width) {
  Target target;
  const auto features = llvm::sys::getHostCPUFeatures();
  auto has = [&](const char* f) {
    auto found = features.find(f);
    return found != features.end() && found->second;
  };
  const bool wide512 = has("avx512f") && has("avx512vl") && has("avx512bw") && has("avx512dq");
  target.vector_bytes = wide512 ? 64 : has("avx2") && has("fma") ? 32 : 16;
  if (width) target.vector_bytes = std::min(target.vector_bytes, width);
  const bool limited = width && width < 64;
  target.cpu = limited ? "x86-64" : llvm::sys::getHostCPUName().str();
  const bool tiles = width == 0 && target.vector_bytes == 64 && has("amx-tile") && may_use_tiles();
  std::vector<std::string> list;
  for (const auto& f : features) {
    const std::string name = f.first().str();
    const bool on = f.second && !is_wider_than(name, target.vector_bytes) && (tiles || !name.starts_with("amx"));
    list.push_back((on ? "+" : "-") + name);
  }
  std::sort(list.begin(), list.end());
  for (const auto& f : list) target.features += (target.features.empty() ? "" : ",") + f;
  target.has_fma = has("fma") && target.vector_bytes >= 32;
  target.has_f16c = has("f16c") && target.vector_bytes >= 32;
  target.has_bf16_pairs = has("avx512bf16") && target.vector_bytes == 64;
  target.has_bf16_tiles = target.has_bf16_pairs && tiles && has("amx-bf16");
  target.vector_functions = vector_function("_ZGVbN4v_sinf") && vector_function("_ZGVbN4v_erff");
  return target;
}

}  // namespace tenon::llvm_backend
