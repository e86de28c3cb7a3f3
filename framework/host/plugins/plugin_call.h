// The thread's current call into a plugin: what the plugin reports, and what it may read while it compiles.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/abi/plugin.h"

namespace tenon::host {

/// Why a call into a plugin failed, in the plugin's words.
struct Report {
  std::int32_t code = TENON_OK;
  std::uint32_t node = TENON_NO_NODE;
  std::string text;
};

/// What `host->report` stored for this thread since the last take; clears it. Reports made by workers of a `parallel_for` count
/// for the thread that called it.
std::optional<Report> take_report();

/// While it lives, `read_constant` answers on this thread, and on the workers of its `parallel_for`.
class CompileScope {
 public:
  explicit CompileScope(const TenonGraph& graph);
  ~CompileScope();
  CompileScope(const CompileScope&) = delete;

  /// Indices of the constants that were read so far, sorted.
  std::vector<std::uint32_t> constants_read() const;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace tenon::host
