// Tries a plugin of unknown origin in the helper process tenon-probe, so that one that crashes, hangs or exits takes nobody along.
#pragma once

#include <string>
#include <vector>

#include "host/plugins/manifest.h"

namespace tenon::host {

/// What the helper found out about a usable library.
struct ProbeVerdict {
  TenonKind kind = TENON_KIND_BACKEND;
  std::vector<std::string> passes;  // that its table has
};

/// Runs the program over the open library: it loads it, calls the entry, claims sample graphs (or runs the passes on them).
/// Waits at most `seconds`; then the helper and all that it started is killed. Throws Refused: what load_library throws, aborted,
/// exited, segfault, stack_overflow, crashed, timed_out, threw, call_failed, probe_failed.
ProbeVerdict run_probe(const std::string& program, int library_fd, const Manifest& manifest, double seconds);

}  // namespace tenon::host
