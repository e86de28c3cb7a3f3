#include "host/passes/pass_manager.h"

#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/ir/printer.h"
#include "core/ops/check/type_checker.h"
#include "host/diagnostics/profiling.h"
#include "host/passes/graph_changes.h"
#include "host/passes/pass_result.h"
#include "host/plugins/contact/cancellation.h"

namespace tenon::host {
namespace {

bool matches(const std::string& pattern, const std::string& name) { return fnmatch(pattern.c_str(), name.c_str(), 0) == 0; }

}  // namespace

/// Adjacent passes of one plugin.
struct PassManager::Crossing {
  const Plugin* plugin = nullptr;
  std::vector<std::string> passes;
};

nlohmann::json to_json(const std::vector<PassRecord>& records) {
  nlohmann::json list = nlohmann::json::array();
  for (const PassRecord& r : records) {
    list.push_back({{"passes", r.passes}, {"plugin", r.plugin}, {"milliseconds", r.milliseconds}, {"changes", r.changes}});
    if (!r.failure.empty()) list.back()["failure"] = r.failure;
  }
  return list;
}

bool PassManager::watched() const {
  return events_.wants("passes") || config_.verify_passes || !config_.dump_passes_before.empty() || !config_.dump_passes_after.empty();
}

std::vector<PassManager::Crossing> PassManager::crossings(const std::vector<std::string>& names) const {
  const bool one_at_a_time = watched();
  std::vector<Crossing> crossings;
  for (const std::string& name : names) {
    const auto& off = config_.disabled_passes;
    if (std::any_of(off.begin(), off.end(), [&](const std::string& pattern) { return matches(pattern, name); })) continue;
    const Plugin* plugin = registry_.pass(name);
    if (!plugin) throw Exception(Code::not_found, registry_.why_no_pass(name));
    if (one_at_a_time || crossings.empty() || crossings.back().plugin != plugin) crossings.push_back({plugin, {}});
    crossings.back().passes.push_back(name);
  }
  return crossings;
}

PipelineResult PassManager::run(ir::Graph graph, const std::vector<std::string>& names) const {
  PipelineResult result{std::move(graph), {}, {}, {}};
  for (const Crossing& crossing : crossings(names)) run_crossing(result, crossing);
  return result;
}

void PassManager::run_crossing(PipelineResult& result, const Crossing& crossing) const {
  stop_if_cancelled();
  const std::size_t position = result.records.size();
  dump(result.graph, config_.dump_passes_before, "before", crossing, position);
  PassRecord record{crossing.passes, crossing.plugin->name, 0, 0, {}};
  attempt(result, crossing, record);
  const bool failed = !record.failure.empty();
  if (failed && crossing.passes.size() > 1) {  // only the pass that fails shall be missing
    for (const std::string& pass : crossing.passes) run_crossing(result, {crossing.plugin, {pass}});
    return;
  }
  dump(result.graph, config_.dump_passes_after, "after", crossing, position);
  nlohmann::json event = {{"kind", failed ? "pass_failed" : "pass"}, {"phase", "pass"}, {"passes", record.passes}, {"plugin", record.plugin},
                          {"milliseconds", record.milliseconds}, {"changes", record.changes}};
  if (failed) {
    const std::string text = fmt::format("pass '{}' of plugin '{}' failed and was left out: {}", record.passes.front(), record.plugin, record.failure);
    event["text"] = text;
    events_.warn_once("passes", text);
  }
  events_.emit(event);
  result.records.push_back(std::move(record));
}

void PassManager::attempt(PipelineResult& result, const Crossing& crossing, PassRecord& record) const {
  ProfiledRange range;
  if (takes_ranges()) range.begin(fmt::format("passes: {}", fmt::join(crossing.passes, ", ")));
  const auto start = std::chrono::steady_clock::now();
  Result<PassOutcome> outcome = call_passes(*crossing.plugin, crossing.passes, result.graph, config_.plugin_options(crossing.plugin->name));
  record.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  if (!outcome) {
    stop_if_cancelled();
    record.failure = outcome.error().message;
    return;
  }
  if (!outcome->graph) return;
  if (std::string broken = broken_promise(result.graph, *outcome->graph); !broken.empty()) {
    record.failure = std::move(broken);
    return;
  }
  auto accepted = ops::accept_graph(*outcome->graph);
  if (!accepted) {
    record.failure = accepted.error().message;
    return;
  }
  result.not_negative = *std::move(accepted);
  record.changes = count_changes(result.graph, *outcome->graph);
  result.graph = std::move(*outcome->graph);
  for (auto& owner : outcome->constants) result.constants.push_back(std::move(owner));
}

void PassManager::dump(const ir::Graph& graph, const std::string& pattern, const char* when, const Crossing& crossing, std::size_t position) const {
  const std::string& pass = crossing.passes.front();
  if (pattern.empty() || !matches(pattern, pass)) return;
  const std::string text = ir::print_graph(graph);
  if (config_.dump_directory.empty()) return events_.log("passes", fmt::format("{} {}:\n{}", when, pass, text));
  std::filesystem::create_directories(config_.dump_directory);
  const std::string path = fmt::format("{}/{}_{:02}_{}_{}.tir", config_.dump_directory, graph.name, position, pass, when);
  std::ofstream(path) << text;
}

}  // namespace tenon::host
