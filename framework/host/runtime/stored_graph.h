// The graph of a plan, which nobody reads while the plan runs: as bytes, until somebody does.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "core/ir/graph.h"

namespace tenon::host {

/// Thread-safe once it is stored.
class StoredGraph {
 public:
  /// The graph, to be built and changed.
  ir::Graph& open() { return *graph_; }
  const ir::Graph& open() const { return *graph_; }

  /// Keeps the graph as bytes. From then on node i is the i-th of `nodes()` as they are now. A graph with constants stays as it is: bytes do
  /// not own them.
  void store();

  /// The graph, which stays in memory from then on.
  const ir::Graph& read() const;
  /// A graph of the caller's own.
  ir::Graph copy() const;

 private:
  mutable std::mutex mutex_;
  mutable std::unique_ptr<ir::Graph> graph_ = std::make_unique<ir::Graph>();
  std::vector<std::uint8_t> bytes_;
};

}  // namespace tenon::host
