#include "host/config/installation.h"

#include <dlfcn.h>

#include <filesystem>
#include <initializer_list>

namespace tenon::host {
namespace {

namespace fs = std::filesystem;

/// The folder of the library (or of the program, where the host is linked statically) that holds this function.
fs::path own_folder() {
  Dl_info info;
  if (!dladdr(reinterpret_cast<const void*>(&own_folder), &info) || !info.dli_fname) return {};
  std::error_code problem;
  fs::path path = fs::canonical(info.dli_fname, problem);
  // A program started by name alone is not found under that name.
  if (problem) path = fs::canonical("/proc/self/exe", problem);
  return path.parent_path();
}

std::string first_existing(const fs::path& folder, std::initializer_list<const char*> candidates) {
  for (const char* candidate : candidates) {
    std::error_code problem;
    const fs::path path = (folder / candidate).lexically_normal();
    if (fs::exists(path, problem)) return path.string();
  }
  return {};
}

Installation find_installation() {
  const fs::path folder = own_folder();
  if (folder.empty()) return {};
  return {first_existing(folder, {"tenon/plugins", "../lib/tenon/plugins"}),
          first_existing(folder, {"tenon/defaults.toml", "../lib/tenon/defaults.toml"}),
          first_existing(folder, {"tenon-probe", "../bin/tenon-probe", "tenon/tenon-probe"})};
}

}  // namespace

const Installation& installation() {
  static const Installation found = find_installation();
  return found;
}

}  // namespace tenon::host
