// The functions that a plugin may call: one TenonHost table a plugin, so that the host knows who calls.
#pragma once

#include <memory>
#include <string>

#include "core/abi/plugin.h"

namespace tenon::host {

class Events;
class ByteStore;

/// A plugin's table and whom it speaks for.
class HostTable {
 public:
  /// `abi` is the negotiated version. Without events, logs go to stderr; without a store nothing is kept. The arithmetic of the threads
  /// that run loops of a plugin is watched unless the plugin is our `own`.
  HostTable(std::string plugin, std::uint32_t abi, Events* events = nullptr, ByteStore* store = nullptr, bool own = false);
  ~HostTable();

  /// Makes one that lives as long as the process: a plugin may use it that long, so the session's end only detaches it.
  static HostTable& make_lasting(std::string plugin, std::uint32_t abi, Events* events = nullptr, ByteStore* store = nullptr, bool own = false);

  const TenonHost* functions() const;
  /// Makes later calls go nowhere but stderr.
  void detach();

  struct State;

 private:
  std::unique_ptr<State> state_;
};

/// The name of the plugin that the table was made for.
const std::string& plugin_of(const TenonHost& table);

/// Tells once that a plugin has left `what` of the arithmetic changed after a call of `function`.
void tell_float_control(const TenonHost& table, const char* function, const std::string& what);

}  // namespace tenon::host
