// Runs a pipeline of passes: prints, times, verifies and counts on their behalf, and does without one that fails.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/ir/graph.h"
#include "host/config/config.h"
#include "host/diagnostics/events.h"
#include "host/plugins/registry/registry.h"

namespace tenon::host {

/// What one crossing into a plugin did: usually one pass, or a run of adjacent passes of one plugin.
struct PassRecord {
  std::vector<std::string> passes;
  std::string plugin;
  double milliseconds = 0;
  std::size_t changes = 0;  // nodes that went or came
  std::string failure;      // the graph is the one before; empty when it went well
};

struct PipelineResult {
  ir::Graph graph;
  std::vector<PassRecord> records;
  std::vector<std::shared_ptr<const void>> constants;  // owners of the bytes of constants that passes made
  std::vector<ir::Dim> not_negative;  // what must hold of each call's sizes for nodes that passes made (ops::accept_graph)
};

nlohmann::json to_json(const std::vector<PassRecord>& records);

class PassManager {
 public:
  PassManager(Registry& registry, Events& events, const Config& config) : registry_(registry), events_(events), config_(config) {}

  /// Runs the passes in order, without those that the configuration disables. Throws (not_found) for a pass that nobody offers. A pass
  /// that fails, or whose answer is no graph with the same inputs and outputs, is an event; the next one gets the graph before it.
  PipelineResult run(ir::Graph graph, const std::vector<std::string>& names) const;

 private:
  struct Crossing;
  std::vector<Crossing> crossings(const std::vector<std::string>& names) const;
  bool watched() const;
  void run_crossing(PipelineResult& result, const Crossing& crossing) const;
  void attempt(PipelineResult& result, const Crossing& crossing, PassRecord& record) const;
  void dump(const ir::Graph& graph, const std::string& pattern, const char* when, const Crossing& crossing, std::size_t position) const;

  Registry& registry_;
  Events& events_;
  const Config& config_;
};

}  // namespace tenon::host
