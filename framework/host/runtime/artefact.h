// A compiled group: what a backend made of it, and under which conditions it is right.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/ir/graph.h"
#include "host/plugins/contact/crossing.h"
#include "host/plugins/registry/backend_instance.h"

namespace tenon::host {

/// Owns a backend's artefact. `execute` may be called on several threads if the backend says so; otherwise it waits its turn.
class Artefact {
 public:
  /// Compiles. Gives the backend's own words as an error when it does not, and when what it returns makes no sense (an assumption
  /// about a symbol that the graph does not have, say). `graph` must not need what the backend cannot do: see `shaped_for`.
  static Result<std::shared_ptr<Artefact>> compile(std::shared_ptr<BackendInstance> backend, const ir::Graph& graph, ConstantStore& constants,
                                                   const std::string& options, std::span<const std::uint32_t> origins);
  ~Artefact();
  Artefact(const Artefact&) = delete;

  BackendInstance& backend() const { return *backend_; }
  const std::vector<TenonAssumption>& assumptions() const { return assumptions_; }
  /// Whether an output may be written over an input, both by position.
  bool permits_alias(std::uint32_t output, std::uint32_t input) const;
  /// Whether it hands over outputs that have no memory.
  bool gives_outputs() const { return gives_outputs_; }
  double compile_milliseconds() const { return compile_milliseconds_; }
  /// Constants whose bytes the backend read while compiling.
  const std::vector<std::uint32_t>& constants_read() const { return constants_read_; }

  /// Bytes of scratch for the given symbol values. An error when the backend does not say, or says more than `most`: what the device has.
  Result<std::size_t> workspace_bytes(const std::int64_t* symbols, std::uint64_t most) const;

  std::int32_t execute(const TenonExecuteArgs& args) const {
    if (!lock_) return call_plugin(watched_, "execute", [&] { return execute_(self_, &args); });
    std::lock_guard lock(*lock_);
    return call_plugin(watched_, "execute", [&] { return execute_(self_, &args); });
  }

 private:
  explicit Artefact(std::shared_ptr<BackendInstance> backend);

  std::int32_t (*execute_)(void*, const TenonExecuteArgs*);
  void* self_ = nullptr;
  std::mutex* lock_;
  const TenonHost* watched_;
  std::shared_ptr<BackendInstance> backend_;
  std::vector<TenonAssumption> assumptions_;
  std::vector<TenonAliasPermit> aliases_;
  std::vector<std::uint32_t> constants_read_;
  bool gives_outputs_ = false;
  double compile_milliseconds_ = 0;
};

/// True when the sizes meet all conditions.
bool holds(const std::vector<TenonAssumption>& assumptions, const std::int64_t* symbols);

}  // namespace tenon::host
