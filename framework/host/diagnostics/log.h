// The logs that people switch on by name (TENON_LOGS=passes,fusion) and that go to stderr.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core/abi/plugin.h"

namespace tenon::host {

struct LogName {
  const char* name;
  const char* meaning;
};

/// Every log there is; its position is its bit.
inline constexpr std::array<LogName, 16> kLogNames = {{
    {"graph_code", "each captured graph, as code"},
    {"graph_breaks", "where and why a capture ended early"},
    {"recompiles", "which guard failed, with the old and the new value"},
    {"guards", "the guards of each capture"},
    {"autodiff", "the backward of each captured graph, and what is kept for it"},
    {"passes", "each pass: time and changes"},
    {"claims", "which backend takes which nodes, and why others were refused"},
    {"fusion", "what a backend fused, and why not more"},
    {"steps", "each step of a backend's program, as JSON: its nodes, their places in the program, its loops; and the bytes alive at each"},
    {"kernel_code", "the code that a backend generates"},
    {"kernel_times", "each step of a backend's run: time, bytes, operations"},
    {"compile", "each compiled group: backend, nodes, time"},
    {"fallbacks", "whatever ran elsewhere than wished: next backend, eager call"},
    {"plugins", "discovery, probing and loading of plugins"},
    {"cache", "hits and misses of the store on disk"},
    {"runtime", "plans, arenas and memory"},
}};

/// A line for each log: its name and what it shows; what the name "help" asks for.
std::string log_help();

/// Takes what is said unasked in this process, warnings and errors, in place of stderr: on the thread where it is said, maybe on several at a time. It must
/// not call back into libtenon. Null puts stderr back.
using MessageListener = void (*)(const char* log, const char* text);
void set_message_listener(MessageListener listener);

/// Takes what logs say, below warnings. No two calls of one at a time, on whatever thread; it must not call back into libtenon.
using LogListener = void (*)(void* context, const char* log, const char* origin, const char* text);

/// The logs of one session. Thread-safe; asking whether a log is on is one atomic load.
class Log {
 public:
  Log();
  ~Log();

  /// Switches on exactly the logs named in a comma-separated list ("all" for every one; "help" is for whoever asks, and none). Throws (invalid_argument) for an unknown
  /// name, with the nearest right one.
  void set(std::string_view names);
  /// Gives a listener what the logs named like that say from now on, whether they are on or not: those that are still go to stderr, too. Null ends it.
  /// Throws as `set` does.
  void listen(std::string_view names, LogListener listener, void* context);
  /// The names that are on.
  std::vector<std::string> names() const;

  /// Whether that log is on, or listened to. An unknown name is off.
  bool wants(std::string_view name) const;
  /// Writes a text that may have several lines; `origin` is the plugin that says it, or empty. Below a warning it is dropped
  /// unless the log is on; warnings and errors are always shown, or handed to the process's listener.
  void write(TenonLevel level, std::string_view name, std::string_view origin, std::string_view text);

 private:
  struct Sink;
  void show(TenonLevel level, std::string_view name, std::string_view origin, std::string_view text);

  std::atomic<std::uint32_t> wanted_{0};  // on, or listened to
  std::atomic<std::uint32_t> on_{0}, heard_{0};
  std::mutex listening_;
  LogListener listener_ = nullptr;
  void* listener_context_ = nullptr;
  std::once_flag sink_once_;
  std::unique_ptr<Sink> sink_;
};

}  // namespace tenon::host
