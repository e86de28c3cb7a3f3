#include "host/driver/session.h"

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "host/diagnostics/perf_code.h"
#include "host/diagnostics/trace.h"
#include "host/driver/diagnosis.h"
#include "host/machine/memory_pool.h"
#include "host/machine/threads.h"

namespace tenon::host {

using nlohmann::json;

Session::Session(const TenonSessionOptions* options) : config(Config::load(options)), registry(config, events), devices(events) {
  registry.check(config);
  std::string logs;
  for (const std::string& name : config.logs) logs += (logs.empty() ? "" : ",") + name;
  events.set_logs(logs);
  if (std::ranges::find(config.logs, "help") != config.logs.end()) std::fputs(log_help().c_str(), stderr);
  for (const std::string& wrong : {config.trace.empty() ? std::string() : start_trace(config.trace), start_perf_code(config.perf)})
    if (!wrong.empty()) events.warn_once("runtime", wrong);
  set_thread_count(config.threads);
  pool_set_idle_limit(config.pool_bytes);
}

std::string backend_options(const Config& config, const std::string& name, const json& options) {
  json merged = json::parse(config.plugin_options(name));
  if (const auto own = options.find(name); own != options.end()) merged.update(*own);
  if (const auto mode = options.find("mode"); mode != options.end()) merged["mode"] = *mode;
  return merged.dump();
}

std::vector<std::shared_ptr<BackendInstance>> Session::backends(const std::vector<std::string>& names, const std::vector<std::string>& own,
                                                                 const json& options) {
  const bool wished = !names.empty();
  std::vector<std::shared_ptr<BackendInstance>> found;
  const auto add = [&](const Plugin& plugin) {
    if (auto made = instance(plugin, options)) found.push_back(std::move(made));
  };
  for (const std::string& name : wished ? names : config.backends) {
    if (std::any_of(found.begin(), found.end(), [&](const auto& b) { return b->name() == name; })) continue;
    const Plugin* plugin = registry.backend(name);
    if (!plugin && wished) throw Exception(Code::not_found, registry.why_no_backend(name));
    if (plugin) {
      add(*plugin);
      continue;
    }
    const std::string text = fmt::format("the configured backend '{}' is left out: {}", name, registry.why_no_backend(name));
    events.emit({{"kind", "backend_missing"}, {"phase", "load"}, {"backend", name}, {"text", text}});
    events.warn_once("plugins", text);
  }
  const auto there = [&](const std::string& name) { return std::any_of(found.begin(), found.end(), [&](const auto& b) { return b->name() == name; }); };
  for (const std::string& name : own) {
    const Plugin* plugin = registry.backend(name);
    if (!plugin) throw Exception(Code::not_found, registry.why_no_backend(name));
    if (!there(name)) add(*plugin);
  }
  if (const Plugin* fallback = there(config.fallback_backend) ? nullptr : registry.backend(config.fallback_backend)) add(*fallback);
  if (found.empty()) throw Exception(Code::not_found, fmt::format("no backend can be had; the fallback: {}", why_no_instance(config.fallback_backend)));
  return found;
}

std::shared_ptr<BackendInstance> Session::instance(const Plugin& plugin, const json& options) {
  if (const auto given = options.find(plugin.name); given != options.end()) registry.check_options(plugin.name, *given);
  const std::string own = backend_options(config, plugin.name, options);
  std::lock_guard lock(mutex_);
  const auto [place, fresh] = instances_.try_emplace(plugin.name + " " + own);
  if (!fresh) return place->second;
  std::shared_ptr<BackendCounters>& counters = counters_[plugin.name];
  if (!counters) counters = std::make_shared<BackendCounters>();
  try {
    place->second = std::make_shared<BackendInstance>(plugin, own, counters);
    devices.open(plugin);
    return place->second;
  } catch (const Exception& problem) {
    // Options that are wrong are an error for whoever wrote them; one that was given up is made another time.
    if (problem.code() == Code::invalid_argument || problem.code() == Code::cancelled) {
      instances_.erase(place);
      throw;
    }
    why_not_made_[plugin.name] = problem.what();
    events.emit({{"kind", "create_failed"}, {"phase", "create"}, {"backend", plugin.name}, {"code", code_name(problem.code())}, {"text", problem.what()}});
    events.warn_once("plugins", fmt::format("{}; it is left out", problem.what()));
    return nullptr;
  } catch (...) {
    instances_.erase(place);
    throw;
  }
}

void Session::open_device(const std::vector<std::string>& names, DLDevice device) {
  open_devices(names);
  devices.get(device);
}

DLDevice Session::find_device(const std::vector<std::string>& names, std::string_view device) {
  open_devices(names);
  return devices.named(device).id();
}

void Session::open_devices(const std::vector<std::string>& names) {
  for (const std::string& name : names.empty() ? config.backends : names)
    if (const Plugin* plugin = registry.backend(name)) devices.open(*plugin);
}

std::string Session::why_no_instance(const std::string& name) {
  std::lock_guard lock(mutex_);
  const auto failed = why_not_made_.find(name);
  return failed == why_not_made_.end() ? registry.why_no_backend(name) : failed->second;
}

json Session::describe_plugin(const std::string& name) {
  json described = registry.describe_one(name);
  const Plugin* backend = registry.backend(name);
  if (!backend) return described;
  devices.open(*backend);
  for (json& plugin : described["plugins"])
    if (plugin["state"] == "loaded")
      for (const std::string& words : devices.words_of(*backend)) plugin["decisions"].push_back(words);
  return described;
}

json Session::query(const std::string& what) {
  constexpr std::string_view kPlugin = "plugin:";
  if (what == "plugins") return registry.describe();
  if (what.starts_with(kPlugin)) return describe_plugin(what.substr(kPlugin.size()));
  if (what == "passes") return registry.describe_passes();
  if (what == "flags") return config.flags_json();
  if (what == "config") return config.to_json();
  if (what == "statistics") return statistics();
  if (what == "cache") return registry.describe_cache();
  if (what == "devices") return devices.describe();
  if (what == "doctor") return diagnosis(*this);
  if (what == "logs") {
    json logs = json::object();
    for (const LogName& log : kLogNames) logs[log.name] = log.meaning;
    return logs;
  }
  throw Exception(Code::not_found, fmt::format("nothing is known as '{}'; ask for plugins, plugin:NAME, passes, flags, config, cache, doctor, logs, devices or statistics", what));
}

json Session::statistics() {
  live_plans.collect();
  json backends = json::object();
  {
    std::lock_guard lock(mutex_);
    for (const auto& [name, c] : counters_)
      backends[name] = {{"nodes", c->nodes.load()},           {"steps", c->steps.load()},
                        {"runs", c->runs.load()},             {"timed_runs", c->timed_runs.load()},
                        {"run_ms", static_cast<double>(c->run_nanoseconds.load()) / 1e6}, {"compile_ms", static_cast<double>(c->compile_nanoseconds.load()) / 1e6}};
  }
  const PoolStatistics pool = pool_statistics();
  const json counts = events.counts();
  json cache = json::object();
  for (const char* name : {"hits", "misses", "stored", "damaged"}) cache[name] = counts.value(std::string("cache_") + name, 0);
  const PeakMemory peak = live_plans.peak_memory();
  return {{"backends", backends},
          {"events", counts},
          {"memory", {{"peak_bytes", peak.planned}, {"unfused_peak_bytes", peak.unfused}}},
          {"cache", cache},
          {"pool", {{"used_bytes", pool.used_bytes}, {"idle_bytes", pool.idle_bytes}, {"allocations", pool.allocations}, {"reuses", pool.reuses}, {"mapped_bytes", pool.mapped_bytes}}}};
}

void Session::reset_statistics() {
  live_plans.collect();
  events.reset_counts();
  std::lock_guard lock(mutex_);
  for (const auto& [name, counters] : counters_) counters->reset();
}

}  // namespace tenon::host
