// Base classes for a backend in C++. A plugin is one class and one line: TENON_BACKEND(MyBackend, "my_backend", "1.0").
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/abi/graph_view.h"
#include "core/abi/plugin.h"
#include "tenon/host_services.h"

namespace tenon {

/// Collects the groups of nodes that a backend wants.
class Claims {
 public:
  explicit Claims(const TenonClaims* claims) : claims_(claims) {}
  /// Claims one group; it becomes one artefact.
  void claim(std::span<const std::uint32_t> nodes) { claims_->claim(claims_->self, nodes.data(), nodes.size()); }
  /// Says why a node is not claimed: a reason code ("op", "dtype", "rank", "layout", "device", "shape"; docs/plugins.md lists them)
  /// and a sentence. A node that is neither claimed nor refused counts as refused for "unstated".
  void refuse(std::uint32_t node, const char* reason, const std::string& text) {
    if (claims_->refuse) claims_->refuse(claims_->self, node, reason, text.c_str());
  }
  /// The options that `compile` will be given for what is claimed, a JSON object; an empty one from a host that does not say them.
  std::string options() const { return TENON_COVERS(claims_, options) && claims_->options ? claims_->options : "{}"; }

 private:
  const TenonClaims* claims_;
};

/// A compiled group of nodes.
class Artefact {
 public:
  virtual ~Artefact() = default;
  /// Runs. Throw to fail. Safe on several threads at once if the backend says TENON_EXECUTE_REENTRANT.
  virtual void execute(const TenonExecuteArgs& args) = 0;
  /// Scratch memory that one run needs, for these values of the group's symbols.
  virtual std::size_t workspace_bytes(std::span<const std::int64_t> /*symbols*/) { return 0; }
  /// Conditions on symbols under which the artefact is right. Asked once, after compile.
  virtual std::vector<TenonAssumption> assumptions() const { return {}; }
  /// Outputs that may have the memory of an input: each element is read for the last time before it is written, and a run that fails
  /// has written none. The host uses it where an output is the new value of that input. Asked once, after compile.
  virtual std::vector<TenonAliasPermit> aliases() const { return {}; }
  /// Whether `execute` hands over outputs whose pointers are null, by `call->give_output` (see TENON_GIVES_OUTPUTS). Asked once, after compile.
  virtual bool gives_outputs() const { return false; }
  /// Bytes from which the backend's `load` makes an equal artefact in another process. Asked only if the backend has `load`.
  virtual std::string serialise() const { return {}; }
};

/// A backend. One object a session and set of options; made when the backend is first used. A class may have a constructor that takes
/// (HostServices, std::string options) or (HostServices); options are a JSON object. It may shadow kFlags and kDevices, and may have
/// `std::unique_ptr<Artefact> load(std::string_view bytes)`: then its artefacts are stored; and `static Devices& open_devices(HostServices)`
/// (tenon/device.h) where it runs nodes on devices whose memory the host cannot reach.
class Backend {
 public:
  static constexpr std::uint32_t kFlags = 0;  // TENON_DYNAMIC_SHAPES and the like
  static constexpr DLDevice kDevices[] = {{kDLCPU, 0}};

  virtual ~Backend() = default;
  /// Claims groups of nodes of `graph`. Claiming nothing is legal.
  virtual void claim(const GraphView& graph, Claims& claims) = 0;
  /// Compiles a group that was claimed: `graph` holds the group alone. `constants` stay where they are until the artefact is gone.
  /// `options` is a JSON object.
  virtual std::unique_ptr<Artefact> compile(const GraphView& graph, std::span<const DLTensor* const> constants,
                                            const std::string& options) = 0;
};

}  // namespace tenon

#include "tenon/backend_entry.h"
