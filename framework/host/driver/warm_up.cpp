#include "host/driver/warm_up.h"

#include <algorithm>
#include <array>

#include "host/driver/program.h"

namespace tenon::host {
namespace {

/// A warning that a backend cannot be had belongs to the session of a program.
bool has_all_backends(Session& session) {
  return std::all_of(session.config.backends.begin(), session.config.backends.end(),
                     [&](const std::string& name) { return session.registry.backend(name) != nullptr; });
}

}  // namespace

void warm_up(const TenonGraph& graph) {
  constexpr std::array kQuiet = {"diagnostics.logs=", "diagnostics.progress=never", "diagnostics.trace=", "diagnostics.perf=", "cache.enabled=false"};
  TenonSessionOptions options{};
  options.struct_size = sizeof options;
  options.overrides = kQuiet.data();
  options.override_count = kQuiet.size();
  const Config config = Config::load(&options);
  if (!config.warm_up || !config.plugin_paths.empty() || !config.environment_plugin_paths.empty()) return;
  const auto session = std::make_shared<Session>(&options);
  if (!has_all_backends(*session)) return;
  TenonCompileRequest request{};
  request.struct_size = sizeof request;
  request.graph = graph;
  TenonProgram program(session, request);
}

}  // namespace tenon::host
