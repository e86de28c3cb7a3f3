#include "host/plugins/registry/backend_instance.h"

#include "core/ir/device.h"
#include "host/plugins/isolation/isolation.h"
#include "host/plugins/isolation/probe.h"

namespace tenon::host {

void BackendCounters::reset() {
  for (auto* counter : {&nodes, &steps, &runs, &timed_runs, &run_nanoseconds, &compile_nanoseconds}) counter->store(0);
}

Error plugin_error(std::int32_t code, const std::string& what) {
  const std::optional<Report> report = take_report();
  const std::string text = report && !report->text.empty() ? report->text : "it gave no reason";
  if (failure_code(code) != static_cast<Code>(code)) return error(Code::plugin_failed, "{} failed with the unknown code {}: {}", what, code, text);
  return {static_cast<Code>(code), text};
}

std::vector<std::string> served_devices(const TenonBackend& backend) {
  std::vector<std::string> names;
  for (const DLDevice& named : std::span(backend.devices, backend.device_count)) {
    const ir::Device device = ir::device_of(named);
    names.push_back(device.index < 0 ? ir::device_kind_text(device.kind) : ir::device_text(device));
  }
  return names;
}

BackendInstance::BackendInstance(const Plugin& plugin, const std::string& options, std::shared_ptr<BackendCounters> counters)
    : plugin_(plugin), options_(options), counters_(std::move(counters)) {
  try_first();
  const std::string given = options;  // the plugin's to spoil
  const std::int32_t code = call("create", [&] { return table().create(plugin.table, given.c_str(), &self_); });
  if (code == TENON_OK) return;
  const Error why = plugin_error(code, "create");
  throw Exception(why.code, fmt::format("backend '{}' could not be set up: {}", plugin.name, why.message));
}

/// Lets the helper make it with these options, before this process does. Throws (plugin_failed, cancelled).
void BackendInstance::try_first() const {
  const auto fail = [&](const Error& why) { throw Exception(why.code, fmt::format("backend '{}' could not be set up: {}", plugin_.name, why.message)); };
  try {
    if (plugin_.probe) plugin_.probe->pass(options_);
  } catch (const Refused& refused) {
    fail({Code::plugin_failed, fmt::format("with these options it {}", refused.refusal().text)});
  }
  if (!plugin_.isolation) return;
  if (const std::optional<Error> why = plugin_.isolation->create(options_)) fail(*why);
}

BackendInstance::~BackendInstance() {
  call("destroy", [&] { return table().destroy(self_), std::int32_t{TENON_OK}; });
}

std::optional<Error> BackendInstance::claim(const TenonGraph& graph, const TenonClaims& claims) {
  if (plugin_.isolation) return plugin_.isolation->claim(options_, graph, claims);
  const auto lock = lock_compile();
  const std::int32_t code = call("claim", [&] { return table().claim(self_, &graph, &claims); });
  if (code == TENON_OK) return std::nullopt;
  return plugin_error(code, "claim");
}

std::optional<Error> BackendInstance::compile(const TenonGraph& graph, const std::string& options, TenonArtefact& artefact,
                                              std::vector<std::uint32_t>& constants_read) {
  if (plugin_.isolation) return compile_isolated(graph, options, artefact, constants_read);
  const auto lock = lock_compile();
  const CompileScope scope(graph);
  const std::int32_t code = call("compile", [&] { return table().compile(self_, &graph, options.c_str(), &artefact); });
  constants_read = scope.constants_read();
  if (code == TENON_OK) return std::nullopt;
  return plugin_error(code, "compile");
}

std::optional<Error> BackendInstance::compile_isolated(const TenonGraph& graph, const std::string& options, TenonArtefact& artefact,
                                                       std::vector<std::uint32_t>& constants_read) {
  Result<IsolatedArtefact> made = plugin_.isolation->compile(options_, graph, options);
  if (!made) return made.error();
  constants_read = std::move(made->constants_read);
  const auto lock = lock_compile();
  const TenonBytes stored = {reinterpret_cast<const std::uint8_t*>(made->stored.data()), made->stored.size()};
  const std::int32_t code = call("load", [&] { return table().load(self_, stored, &artefact); });
  if (code == TENON_OK) return std::nullopt;
  return plugin_error(code, "load");
}

std::unique_lock<std::mutex> BackendInstance::lock_compile() {
  return has(TENON_COMPILE_REENTRANT) ? std::unique_lock<std::mutex>() : std::unique_lock(compile_mutex_);
}

}  // namespace tenon::host
