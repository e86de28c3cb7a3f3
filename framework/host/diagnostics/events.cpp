#include "host/diagnostics/events.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <utility>

namespace tenon::host {
namespace {

/// The log that shows events of a kind.
std::string_view log_of(std::string_view kind) {
  constexpr std::pair<std::string_view, std::string_view> logs[] = {
      {"plugin", "plugins"},       {"pass", "passes"},          {"claim", "claims"},       {"compile", "compile"},
      {"fallback", "fallbacks"},   {"eager", "fallbacks"},      {"graph_break", "graph_breaks"}, {"recompile", "recompiles"},
      {"guard", "guards"},         {"cache", "cache"},          {"fusion", "fusion"},          {"opaque", "fallbacks"},
  };
  for (const auto& [prefix, log] : logs)
    if (kind.substr(0, prefix.size()) == prefix) return log;
  return "runtime";
}

/// "key=value key=value", without the kind.
std::string line_of(const nlohmann::json& event) {
  std::string line = event.value("kind", "event");
  for (const auto& [key, value] : event.items()) {
    if (key == "kind") continue;
    line += fmt::format(" {}={}", key, value.is_string() ? value.get<std::string>() : value.dump());
  }
  return line;
}

}  // namespace

void Events::set_callback(Callback callback, void* context) {
  const std::lock_guard lock(callback_mutex_);
  callback_ = callback;
  context_ = context;
}

void Events::emit(const nlohmann::json& event) {
  const std::string kind = event.value("kind", "event");
  count(kind);
  {
    const std::lock_guard lock(callback_mutex_);
    if (callback_) callback_(context_, event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  }
  if (const std::string_view log = log_of(kind); wants(log)) log_.write(TENON_INFO, log, {}, line_of(event));
}

void Events::count(std::string_view counter, std::int64_t n) {
  const std::lock_guard lock(mutex_);
  const auto found = counts_.find(counter);
  if (found != counts_.end()) {
    found->second += n;
  } else {
    counts_.emplace(counter, n);
  }
}

nlohmann::json Events::counts() const {
  const std::lock_guard lock(mutex_);
  nlohmann::json result = nlohmann::json::object();
  for (const auto& [name, n] : counts_) result[name] = n;
  return result;
}

void Events::reset_counts() {
  const std::lock_guard lock(mutex_);
  counts_.clear();
}

void Events::warn_once(std::string_view log, std::string_view text) {
  {
    const std::lock_guard lock(mutex_);
    if (!warned_.emplace(text, true).second) return;
  }
  log_.write(TENON_WARNING, log, {}, text);
}

}  // namespace tenon::host
