// What processor the process runs on, in words for people.
#pragma once

#include <string>

namespace tenon::host {

struct Processor {
  std::string name;      // "unknown" where the system does not say
  std::string features;  // the vector and matrix extensions, separated by blanks
};

/// Reads /proc/cpuinfo.
Processor processor();

/// System, release and machine: "Linux 6.1.0, x86_64, glibc 2.36".
std::string operating_system();

}  // namespace tenon::host
