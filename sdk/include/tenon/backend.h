// Base classes for a backend in C++. A plugin is one class and one line: TENON_BACKEND(MyBackend, "my_backend", "1.0").
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/abi/graph_view.h"
#include "core/abi/plugin.h"

namespace tenon {

/// The host's services, for a plugin.
class HostServices;  // tenon/host_services.h: log, allocate, parallel_for, thread_count, cancelled, read_constant

/// Collects the groups of nodes that a backend wants.
class Claims {
 public:
  explicit Claims(const TenonClaims* claims) : claims_(claims) {}
  /// Claims one group; it becomes one artefact.
  void claim(std::span<const std::uint32_t> nodes) { claims_->claim(claims_->self, nodes.data(), nodes.size()); }
  /// Says why a node is not claimed.
  void refuse(std::uint32_t node, const char* reason, const std::string& text) {
    claims_->refuse(claims_->self, node, reason, text.c_str());
  }

 private:
  const TenonClaims* claims_;
};

/// A compiled group of nodes.
class Artefact {
 public:
  virtual ~Artefact() = default;
  /// Runs. Throw to fail. Must be safe on several threads if the backend says execute_reentrant.
  virtual void execute(const TenonExecuteArgs& args) = 0;
  virtual std::size_t workspace_bytes(std::span<const std::int64_t> /*symbols*/) { return 0; }
  virtual std::vector<TenonAssumption> assumptions() const { return {}; }
  virtual std::vector<TenonAliasPermit> aliases() const { return {}; }
};

/// A backend. One object a session and set of options; made when the backend is first used.
class Backend {
 public:
  static constexpr std::uint32_t kFlags = 0;  // TENON_DYNAMIC_SHAPES and the like; shadow it in the class

  virtual ~Backend() = default;
  /// Claims groups of nodes of `graph`. Claiming nothing is legal.
  virtual void claim(const GraphView& graph, Claims& claims) = 0;
  /// Compiles a group that was claimed: `graph` holds the group alone. `options` is a JSON object.
  virtual std::unique_ptr<Artefact> compile(const GraphView& graph, std::span<const DLTensor* const> constants,
                                            const std::string& options) = 0;
};

}  // namespace tenon

#include "tenon/backend_entry.h"
