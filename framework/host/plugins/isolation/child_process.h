// Runs a helper program and listens to it for a limited time.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::host {

struct ChildResult {
  bool timed_out = false;
  bool cancelled = false;  // the driver gave the compile up
  bool started = false;
  int start_error = 0;    // errno, when it did not start
  bool exited = false;    // else it was killed by a signal
  int status = -1;        // exit status or signal; -1: the process's end was taken by somebody else's wait
  std::string complaint;  // the end of what it wrote to stderr
};

/// Starts `command` with posix_spawn (never a bare fork: the caller may have threads) in a process group of its own, gives it the
/// files as descriptors 3, 5, 6, … and the answer pipe as 4, stdin and stdout to nowhere. Calls `line` for each line of the answer;
/// when that gives true the child has said all. A compile that is given up (cancellation.h) waits no longer. Ends with the group killed.
ChildResult run_child(const std::vector<std::string>& command, std::span<const int> files, double seconds, const std::function<bool(std::string_view)>& line);

}  // namespace tenon::host
