#include "driver/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>

#include "tenon/host_services.h"

namespace tenon::cuda {
namespace {

/// After these nothing runs in the process's context any more: errors of the context, of the card, of code that ran (sticky, says the
/// manual: "the process must be terminated and relaunched").
constexpr CUresult kLost[] = {4, 46, 100, 101, 201, 214, 219, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719};

/// The first that reads the PTX which is made (../compile): CUDA 12.0.
constexpr int kOldest = 12000;

}  // namespace

template <class... Parameters>
bool DriverFunction<Parameters...>::find(void* library) {
  function_ = reinterpret_cast<CUresult (*)(Parameters...)>(dlsym(library, name_));
  return function_ != nullptr;
}

const Driver& Driver::get() {
  static const Driver& driver = *new Driver;
  return driver;
}

Driver::Driver() : why_not_(open()) {}

std::string Driver::open() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return fmt::format("NVIDIA's driver is not there: {}", dlerror());
#define TENON_CUDA_FIND(member, name, ...) \
  if (!member.find(library)) return "the driver is too old: it has no " #name;
  TENON_CUDA_FUNCTIONS(TENON_CUDA_FIND)
#undef TENON_CUDA_FIND
#define TENON_CUDA_LOOK(member, ...) member.find(library);
  TENON_CUDA_NEWER_FUNCTIONS(TENON_CUDA_LOOK)
#undef TENON_CUDA_LOOK
  if (const CUresult code = init.code(0); code != kSuccess) return fmt::format("the driver cannot be used: {}", words_of(code));
  driver_version(&version_);
  if (version_ < kOldest) return fmt::format("the driver is too old: it knows CUDA {}.{}; 12.0 is needed", version_ / 1000, version_ % 1000 / 10);
  return {};
}

std::string Driver::words_of(CUresult code) const {
  const char *name = nullptr, *text = nullptr;
  error_name.code(code, &name), error_string.code(code, &text);
  return fmt::format("{} ({})", name ? name : fmt::format("error {}", code), text ? text : "the driver has no words for it");
}

void throw_failure(const char* function, CUresult code) {
  const TenonCode meaning = code == kOutOfMemory ? TENON_OUT_OF_MEMORY : std::ranges::find(kLost, code) != std::end(kLost) ? TENON_DEVICE_LOST : TENON_PLUGIN_FAILED;
  throw Failure(meaning, fmt::format("{} failed: {}", function, Driver::get().words_of(code)));
}

}  // namespace tenon::cuda
