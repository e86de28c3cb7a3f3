#include "host/diagnostics/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include "core/base/error.h"
#include "host/diagnostics/suggestion.h"

namespace tenon::host {
namespace {

std::atomic<MessageListener> g_message_listener{nullptr};

constexpr std::uint32_t kAll = (1u << kLogNames.size()) - 1;

std::uint32_t bit_of(std::string_view name) {
  for (std::size_t i = 0; i < kLogNames.size(); ++i)
    if (name == kLogNames[i].name) return 1u << i;
  return 0;
}

std::uint32_t bit_or_throw(std::string_view name) {
  if (name == "all") return kAll;
  if (name == "help") return 0;
  if (const std::uint32_t bit = bit_of(name)) return bit;
  std::vector<std::string> known = {"all"};
  for (const LogName& log : kLogNames) known.emplace_back(log.name);
  throw Exception(Code::invalid_argument, fmt::format("unknown log '{}'{}", name, suggestion_text(name, known)));
}

std::uint32_t bits_of(std::string_view names) {
  std::uint32_t on = 0;
  while (!names.empty()) {
    const std::size_t comma = names.find(',');
    std::string_view name = names.substr(0, comma);
    names = comma == std::string_view::npos ? std::string_view() : names.substr(comma + 1);
    while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
    while (!name.empty() && name.back() == ' ') name.remove_suffix(1);
    if (!name.empty()) on |= bit_or_throw(name);
  }
  return on;
}

spdlog::level::level_enum level_of(TenonLevel level) {
  switch (level) {
    case TENON_DEBUG: return spdlog::level::debug;
    case TENON_INFO: return spdlog::level::info;
    case TENON_WARNING: return spdlog::level::warn;
    case TENON_ERROR: return spdlog::level::err;
  }
  return spdlog::level::info;
}

}  // namespace

struct Log::Sink {
  spdlog::logger logger{"tenon", std::make_shared<spdlog::sinks::stderr_sink_mt>()};
  Sink() {
    logger.set_level(spdlog::level::trace);
    logger.set_pattern("[tenon %l] %v");
    logger.flush_on(spdlog::level::trace);
  }
};

std::string log_help() {
  std::string text = "The logs of TENON_LOGS=NAME,NAME and tenon.set_logs(NAME=True), which are written to stderr; \"all\" for every one:\n";
  for (const LogName& log : kLogNames) text += fmt::format("  {:<13} {}\n", log.name, log.meaning);
  return text;
}

void set_message_listener(MessageListener listener) { g_message_listener.store(listener); }

Log::Log() = default;
Log::~Log() = default;

void Log::set(std::string_view names) {
  const std::uint32_t on = bits_of(names);
  const std::lock_guard lock(listening_);
  on_.store(on, std::memory_order_relaxed);
  wanted_.store(on | heard_.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

void Log::listen(std::string_view names, LogListener listener, void* context) {
  const std::uint32_t heard = listener ? bits_of(names) : 0;
  const std::lock_guard lock(listening_);
  listener_ = listener, listener_context_ = context;
  heard_.store(heard, std::memory_order_relaxed);
  wanted_.store(heard | on_.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

std::vector<std::string> Log::names() const {
  std::vector<std::string> result;
  for (const LogName& log : kLogNames)
    if (on_.load(std::memory_order_relaxed) & bit_of(log.name)) result.emplace_back(log.name);
  return result;
}

bool Log::wants(std::string_view name) const {
  const std::uint32_t wanted = wanted_.load(std::memory_order_relaxed);
  return wanted != 0 && (wanted & bit_of(name)) != 0;
}

void Log::write(TenonLevel level, std::string_view name, std::string_view origin, std::string_view text) {
  if (level >= TENON_WARNING) {
    if (const MessageListener listener = g_message_listener.load())
      return listener(std::string(name).c_str(), (origin.empty() ? std::string(text) : fmt::format("{}: {}", origin, text)).c_str());
    return show(level, name, origin, text);
  }
  if (!wants(name)) return;
  if (heard_.load(std::memory_order_relaxed) & bit_of(name)) {
    const std::lock_guard lock(listening_);
    if (listener_) listener_(listener_context_, std::string(name).c_str(), std::string(origin).c_str(), std::string(text).c_str());
  }
  if (on_.load(std::memory_order_relaxed) & bit_of(name)) show(level, name, origin, text);
}

void Log::show(TenonLevel level, std::string_view name, std::string_view origin, std::string_view text) {
  std::call_once(sink_once_, [this] { sink_ = std::make_unique<Sink>(); });
  const std::string line = origin.empty() ? fmt::format("{}: {}", name, text) : fmt::format("{}: {}: {}", name, origin, text);
  sink_->logger.log(level_of(level), line);
}

}  // namespace tenon::host
