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
  /// `abi` is the negotiated version. Without events, logs go to stderr; without a store nothing is kept.
  HostTable(std::string plugin, std::uint32_t abi, Events* events = nullptr, ByteStore* store = nullptr);
  ~HostTable();

  /// Makes one that lives as long as the process: a plugin may use it that long, so the session's end only detaches it.
  static HostTable& make_lasting(std::string plugin, std::uint32_t abi, Events* events = nullptr, ByteStore* store = nullptr);

  const TenonHost* functions() const;
  /// Makes later calls go nowhere but stderr.
  void detach();

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace tenon::host
