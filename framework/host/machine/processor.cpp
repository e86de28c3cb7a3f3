#include "host/machine/processor.h"

#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sys/utsname.h>

#include <fstream>
#include <sstream>
#include <string_view>

namespace tenon::host {
namespace {

/// Extensions that decide which code is generated, on x86-64 and on 64-bit ARM.
bool is_told(std::string_view feature) {
  constexpr std::string_view kBeginnings[] = {"sse4", "avx", "fma", "f16c", "bmi", "amx", "asimd", "sve", "bf16", "i8mm"};
  for (const std::string_view beginning : kBeginnings)
    if (feature.starts_with(beginning)) return true;
  return feature == "sme" || feature == "sme2";
}

std::string told_of(const std::string& all) {
  std::istringstream words(all);
  std::string told;
  for (std::string word; words >> word;)
    if (is_told(word)) told += (told.empty() ? "" : " ") + word;
  return told;
}

}  // namespace

Processor processor() {
  Processor found{"unknown", ""};
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line) && !line.empty();) {  // the first processor's lines
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    const std::string value = line.substr(colon + 2);
    if (line.starts_with("model name")) found.name = value;
    if (line.starts_with("flags") || line.starts_with("Features")) found.features = told_of(value);
  }
  return found;
}

std::string operating_system() {
  utsname names{};
  if (::uname(&names) != 0) return "unknown";
  return fmt::format("{} {}, {}, glibc {}", names.sysname, names.release, names.machine, gnu_get_libc_version());
}

}  // namespace tenon::host
