// Runs passes through the plugin contract, as the host does: the buffer crosses, and another comes back.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/abi/plugin.h"
#include "core/ir/graph.h"

namespace tenon::golden {

/// What passes made of a graph, and what its constants borrow their bytes from.
struct RewrittenGraph {
  ir::Graph graph;
  std::vector<std::shared_ptr<const void>> owners;
};

/// The libraries of passes in a plugin folder.
class PassPlugins {
 public:
  explicit PassPlugins(const std::filesystem::path& folder);

  /// Runs the passes in order; adjacent ones of one library in one crossing. Throws what the plugin reported, (not_found) for an
  /// unknown pass.
  RewrittenGraph run(ir::Graph graph, const std::vector<std::string>& passes) const;

 private:
  std::map<std::string, const TenonPassTable*> tables_;  // by pass
};

}  // namespace tenon::golden
