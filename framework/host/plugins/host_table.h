// The functions that a plugin may call: one TenonHost table a plugin, so that the host knows who calls.
#pragma once

#include <memory>
#include <string>

#include "core/abi/plugin.h"

namespace tenon::host {

class Events;
class ByteStore;

/// Whom a host table speaks for. Tables outlive sessions (a plugin may keep the pointer), so the session's end only detaches it.
class PluginIdentity {
 public:
  PluginIdentity(std::string name, Events* events, ByteStore* store);
  ~PluginIdentity();
  const std::string& name() const;
  /// Makes later calls go nowhere but stderr.
  void detach();

  struct State;
  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

/// Makes a table for a plugin. Table and identity are never freed: a plugin may use them for the life of the process.
/// `abi` is the negotiated version.
const TenonHost* make_host_table(PluginIdentity& identity, std::uint32_t abi);

}  // namespace tenon::host
