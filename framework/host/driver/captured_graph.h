// A graph that the host holds for its caller: what a frontend read from a file, or what passes made of one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/ir/graph.h"
#include "host/driver/session.h"
#include "host/plugins/contact/crossing.h"

/// The handle of the C API.
struct TenonCapturedGraph {
 public:
  /// Takes a graph and what keeps its constants alive.
  TenonCapturedGraph(std::shared_ptr<tenon::host::Session> session, tenon::ir::Graph graph, std::vector<std::shared_ptr<const void>> constants);

  const TenonGraph& graph() const { return crossing_.graph(); }

  /// What the driver that exported the graph said of it; "{}" for graphs of other origin.
  std::string signature = "{}";

 private:
  std::shared_ptr<tenon::host::Session> session_;  // constants may be freed by a plugin's code
  tenon::ir::Graph graph_;
  std::vector<std::shared_ptr<const void>> constants_;
  tenon::host::ConstantStore store_;
  tenon::host::Crossing crossing_;
};

namespace tenon::host {

/// Reads an exported program, or any other file with the frontend that its suffix belongs to. Throws what the frontend says.
std::unique_ptr<TenonCapturedGraph> capture_file(std::shared_ptr<Session> session, const std::string& path, const char* options);
/// Runs passes only.
std::unique_ptr<TenonCapturedGraph> run_passes(std::shared_ptr<Session> session, const TenonGraph& graph, const std::vector<std::string>& names);

}  // namespace tenon::host
