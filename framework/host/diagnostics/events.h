// What happened in a session: JSON events, counted by kind, handed to a callback, and written to the log of their kind.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "host/diagnostics/log.h"

namespace tenon::host {

/// The events and logs of one session. Thread-safe.
class Events {
 public:
  using Callback = void (*)(void* context, const char* json);

  /// The callback runs on the thread of the event, one call at a time, and must not call back into the session.
  void set_callback(Callback callback, void* context);

  /// Takes an event: an object with a "kind". Counts the kind, calls the callback, and writes a line to the log of the kind
  /// when that is on.
  void emit(const nlohmann::json& event);
  /// Adds to a counter without making an event.
  void count(std::string_view counter, std::int64_t n = 1);
  /// The counters, by name.
  nlohmann::json counts() const;
  void reset_counts();

  void set_logs(std::string_view names) { log_.set(names); }
  void listen_to_logs(std::string_view names, LogListener listener, void* context) { log_.listen(names, listener, context); }
  bool wants(std::string_view log) const { return log_.wants(log); }
  void log(std::string_view log, std::string_view text) { log_.write(TENON_INFO, log, {}, text); }
  /// What a plugin says.
  void log(TenonLevel level, std::string_view log, std::string_view plugin, std::string_view text) { log_.write(level, log, plugin, text); }
  /// A thing that the user should know of even with all logs off: printed once a text.
  void warn_once(std::string_view log, std::string_view text);

 private:
  Log log_;
  mutable std::mutex mutex_;
  std::mutex callback_mutex_;
  std::map<std::string, std::int64_t, std::less<>> counts_;
  std::map<std::string, bool, std::less<>> warned_;
  Callback callback_ = nullptr;
  void* context_ = nullptr;
};

}  // namespace tenon::host
