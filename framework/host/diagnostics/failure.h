// A failure with all that is known of it: the phase, the plugin and the node, beside the class and the words.
#pragma once

#include <cstdint>
#include <string>

#include "core/abi/plugin.h"
#include "core/base/error.h"

namespace tenon::host {

/// Thrown inside the host where a plugin is to blame or where the phase is known; `tenon_last_error` gives it to the caller.
class Failure : public Exception {
 public:
  Failure(Code code, TenonPhase phase, std::string plugin, const std::string& text, std::uint32_t node = TENON_NO_NODE)
      : Exception(code, text), phase_(phase), plugin_(std::move(plugin)), node_(node) {}

  TenonPhase phase() const { return phase_; }
  const std::string& plugin() const { return plugin_; }
  std::uint32_t node() const { return node_; }

 private:
  TenonPhase phase_;
  std::string plugin_;
  std::uint32_t node_;
};

}  // namespace tenon::host
