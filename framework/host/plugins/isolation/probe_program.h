// The program tenon-probe with one library: what it is asked, what it answers, and what its end means.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

#include "host/plugins/find/file.h"
#include "host/plugins/find/manifest.h"
#include "host/plugins/isolation/message_file.h"

namespace tenon::host {

/// Starts a process for each question. Thread-safe.
class Helper {
 public:
  /// `settings` are laid into every request: see probe_protocol.h.
  Helper(std::string program, Manifest manifest, Descriptor library, nlohmann::json settings)
      : program_(std::move(program)), manifest_(std::move(manifest)), library_(std::move(library)), settings_(std::move(settings)) {}

  struct Answer {
    nlohmann::json said;  // the words of its last line
    Message reply;
  };
  /// Waits at most `seconds`; then the helper and all that it started is killed, as when the compile is given up meanwhile. What the plugin
  /// wrote to stderr goes there when it held. Throws Refused with the helper's own reason, or: aborted, exited, segfault, crashed, timed_out,
  /// probe_failed; Exception (cancelled, out_of_memory, malformed).
  Answer ask(nlohmann::json request, std::span<const std::string_view> parts, double seconds) const;

  int library() const { return library_.get(); }
  const Manifest& manifest() const { return manifest_; }

 private:
  std::string program_;
  Manifest manifest_;
  Descriptor library_;
  nlohmann::json settings_;
};

}  // namespace tenon::host
