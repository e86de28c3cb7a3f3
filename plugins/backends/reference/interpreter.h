// Runs a graph node by node with the reference evaluator.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/ir/graph.h"
#include "core/ops/op.h"
#include "tenon/backend.h"
#include "tenon/profiling.h"

namespace tenon::reference {

/// A compiled group: the graph, and which values die after which node. Safe on several threads.
class Interpreter : public Artefact {
 public:
  /// Constants of the graph keep their addresses for the life of the artefact.
  Interpreter(HostServices host, ir::Graph graph);

  void execute(const TenonExecuteArgs& args) override;

 private:
  friend class Execution;

  HostServices host_;
  Profiling profiling_;
  ir::Graph graph_;
  std::vector<std::vector<ValueId>> dead_after_;      // by position of the node: intermediates that nothing reads later
  std::vector<std::vector<std::uint32_t>> outputs_of_;  // by ValueId: the outputs that it is
};

}  // namespace tenon::reference
