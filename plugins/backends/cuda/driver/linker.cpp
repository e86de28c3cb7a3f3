#include "driver/linker.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <vector>

#include "driver/driver.h"

namespace tenon::cuda {
namespace {

using Handle = struct nvJitLink*;

/// nvJitLink: https://docs.nvidia.com/cuda/nvjitlink/
constexpr int kDone = 0, kPtx = 2;

class Linker {
 public:
  static const Linker& get() {
    static const Linker& linker = *new Linker;
    return linker;
  }

  const std::string& name() const { return name_; }

  std::optional<std::string> cubin_of(const std::string& ptx, const std::string& architecture) const {
    if (name_.empty()) return std::nullopt;
    const std::string target = "-arch=" + architecture;
    std::array<const char*, 2> options = {target.c_str(), "-O3"};
    Handle handle = nullptr;
    if (create_(&handle, options.size(), options.data()) != kDone) return std::nullopt;
    std::optional<std::string> cubin;
    std::size_t bytes = 0;
    if (add_(handle, kPtx, ptx.data(), ptx.size() + 1, "kernels") == kDone && complete_(handle) == kDone && size_(handle, &bytes) == kDone) {
      cubin.emplace(bytes, '\0');
      if (cubin_(handle, cubin->data()) != kDone) cubin.reset();
    }
    destroy_(&handle);
    return cubin;
  }

 private:
  /// What the process has loaded comes first (torch's own), then what the system has. Code of a newer toolkit than the driver's is not loaded by it.
  Linker() {
    const int newest = Driver::get().version() / 1000;
    for (const int how : {RTLD_NOLOAD | RTLD_NOW, RTLD_NOW | RTLD_LOCAL})
      for (int major = newest; major >= 12; --major) {
        const std::string name = fmt::format("libnvJitLink.so.{}", major);
        void* library = dlopen(name.c_str(), how);
        if (library && has_all(library, major)) {
          name_ = name;
          return;
        }
      }
  }

  bool has_all(void* library, int major) {
    const auto find = [&](auto& function, const char* name) {
      void* found = dlsym(library, name);
      if (!found) found = dlsym(library, fmt::format("__{}_{}_0", name, major).c_str());
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
      return found != nullptr;
    };
    return find(create_, "nvJitLinkCreate") && find(destroy_, "nvJitLinkDestroy") && find(add_, "nvJitLinkAddData") && find(complete_, "nvJitLinkComplete") &&
           find(size_, "nvJitLinkGetLinkedCubinSize") && find(cubin_, "nvJitLinkGetLinkedCubin");
  }

  std::string name_;
  int (*create_)(Handle*, std::uint32_t, const char**) = nullptr;
  int (*destroy_)(Handle*) = nullptr;
  int (*add_)(Handle, int, const void*, std::size_t, const char*) = nullptr;
  int (*complete_)(Handle) = nullptr;
  int (*size_)(Handle, std::size_t*) = nullptr;
  int (*cubin_)(Handle, void*) = nullptr;
};

}  // namespace

std::optional<std::string> to_cubin(const std::string& ptx, const std::string& architecture) { return Linker::get().cubin_of(ptx, architecture); }

std::string linker_name() { return Linker::get().name(); }

}  // namespace tenon::cuda
