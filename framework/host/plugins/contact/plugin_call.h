// Calls into plugins: what may not come out of one, what the plugin reports, and what it may read while it compiles.
#pragma once

#include <cxxabi.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/abi/plugin.h"
#include "core/base/float_control.h"

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

/// While it lives, the thread runs code of a plugin that is not part of the installation: what that leaves changed of the arithmetic is
/// put back at the end, and told once with the plugin's name; and it is known whose code it is. Without a table it does nothing.
class CallWatch {
 public:
  CallWatch(const TenonHost* watched, const char* function) : watched_(watched), function_(function) {
    if (!watched_) return;
    before_ = FloatControl::current();
    outer_ = std::exchange(innermost_, this);
  }
  ~CallWatch() {
    if (!watched_) return;
    innermost_ = outer_;
    if (FloatControl::current() != before_) put_back();
  }
  CallWatch(const CallWatch&) = delete;

  /// Of this thread; null while it runs none.
  static const CallWatch* innermost() { return innermost_; }
  const TenonHost* watched() const { return watched_; }
  const char* function() const { return function_; }

 private:
  void put_back() const noexcept;

  static thread_local constinit const CallWatch* innermost_;
  const TenonHost* watched_;
  const char* function_;
  FloatControl before_;
  const CallWatch* outer_ = nullptr;
};

/// Reports the exception that is being handled as the failure of that function, and gives its code.
std::int32_t report_escaped(const char* function) noexcept;

/// Calls a function of a plugin's table. No exception comes out: one that leaves the C function is a failure, with a report. `watched` is
/// the plugin's host table unless the plugin is part of the installation; `function` is the name for messages.
template <class Call>
std::int32_t call_plugin(const TenonHost* watched, const char* function, const Call& call) {
  const CallWatch watch(watched, function);
  try {
    return call();
  } catch (abi::__forced_unwind&) {
    throw;  // the thread ends (pthread_exit): whoever holds that up is terminated
  } catch (...) {
    return report_escaped(function);
  }
}

}  // namespace tenon::host
