#include "host/partition/backend_instance.h"

namespace tenon::host {

void BackendCounters::reset() {
  for (auto* counter : {&nodes, &steps, &runs, &timed_runs, &run_nanoseconds, &compile_nanoseconds}) counter->store(0);
}

Error plugin_error(std::int32_t code, const std::string& what) {
  const std::optional<Report> report = take_report();
  const std::string text = report && !report->text.empty() ? report->text : "it gave no reason";
  const bool known = code > TENON_OK && code <= TENON_INTERNAL;
  if (!known) return error(Code::plugin_failed, "{} failed with the unknown code {}: {}", what, code, text);
  return {static_cast<Code>(code), text};
}

BackendInstance::BackendInstance(const Plugin& plugin, const std::string& options, std::shared_ptr<BackendCounters> counters)
    : plugin_(plugin), counters_(std::move(counters)) {
  if (!table().create) return;
  take_report();
  const std::int32_t code = table().create(plugin.table, options.c_str(), &self_);
  if (code == TENON_OK) return;
  const Error why = plugin_error(code, "create");
  throw Exception(Code::plugin_failed, fmt::format("backend '{}' could not be set up: {}", plugin.name, why.message));
}

BackendInstance::~BackendInstance() {
  if (table().destroy) table().destroy(self_);
}

std::unique_lock<std::mutex> BackendInstance::lock_compile() {
  return has(TENON_COMPILE_REENTRANT) ? std::unique_lock<std::mutex>() : std::unique_lock(compile_mutex_);
}

}  // namespace tenon::host
