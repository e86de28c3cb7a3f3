// TENON_PERF: names and lines of generated code for Linux perf.
#pragma once

#include <string>

namespace tenon::host {

/// Tells perf of the code that is made in this process from now on. "map": names, in /tmp/perf-PID.map. "jitdump": names, code and the user's lines, in
/// jit-PID.dump in the working directory, for `perf record -k 1` and `perf inject --jit`. "" tells nothing. Gives what is wrong with the file, in words, or nothing:
/// then nothing is told. A second call does nothing. Throws (invalid_argument) for another word.
///
/// The formats: tools/perf/Documentation/jit-interface.txt and jitdump-specification.txt of the Linux kernel (version 1).
std::string start_perf_code(const std::string& how);

}  // namespace tenon::host
