// A graph that a frontend read from a file.
#pragma once

#include <string>

#include "command.h"
#include "core/ir/graph.h"

namespace tenon::cli {

/// Owns a captured graph.
class Captured {
 public:
  explicit Captured(TenonCapturedGraph* graph) : graph_(graph) {}
  Captured(Captured&& other) noexcept : graph_(std::exchange(other.graph_, nullptr)) {}
  Captured(const Captured&) = delete;
  ~Captured() {
    if (graph_) tenon_captured_release(graph_);
  }

  const TenonGraph& buffer() const { return *tenon_captured_graph(graph_); }
  /// The graph as objects; borrows the constants' bytes.
  ir::Graph graph() const;

 private:
  TenonCapturedGraph* graph_;
};

/// Reads the file with the frontend for its suffix. Throws CommandError: bad usage when it cannot be read at all or no frontend
/// reads such files, failed when the frontend finds it damaged.
Captured capture(const Session& session, const std::string& path);

}  // namespace tenon::cli
