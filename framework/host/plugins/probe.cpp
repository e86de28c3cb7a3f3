#include "host/plugins/probe.h"

#include <nlohmann/json.hpp>

#include "host/plugins/helper_run.h"

namespace tenon::host {
namespace {

TenonKind kind_named(const std::string& name) {
  for (const TenonKind kind : {TENON_KIND_FRONTEND, TENON_KIND_PASSES})
    if (name == kind_name(kind)) return kind;
  return TENON_KIND_BACKEND;
}

}  // namespace

ProbeVerdict run_probe(const std::string& program, int library_fd, const Manifest& manifest, double seconds) {
  const nlohmann::json said = run_helper(program, manifest, {}, {&library_fd, 1}, seconds);
  return {kind_named(said.value("kind", "")), said.value("passes", std::vector<std::string>())};
}

}  // namespace tenon::host
