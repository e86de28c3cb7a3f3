// Tries a plugin of unknown origin in the helper process tenon-probe, so that one that crashes, hangs or exits takes nobody along.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "host/diagnostics/events.h"
#include "host/plugins/find/refusal.h"
#include "host/plugins/isolation/probe_program.h"
#include "host/plugins/isolation/verdict_store.h"

namespace tenon::host {

/// Tries one library, with each set of options before a backend is made with them in this process. Thread-safe.
class Probe {
 public:
  /// Waits at most `seconds` for the helper. Verdicts are remembered under `content_hash`.
  Probe(std::shared_ptr<const Helper> helper, std::string content_hash, double seconds, const VerdictStore& verdicts, Events& events)
      : helper_(std::move(helper)), content_hash_(std::move(content_hash)), seconds_(seconds), verdicts_(verdicts), events_(events) {}

  /// Asks for the remembered verdict on the library with these options (a JSON object), else lets the helper load it, call the entry, and
  /// live through all that it does on sample graphs. Says which it was. Throws Refused: what load_library throws, aborted, exited,
  /// segfault, stack_overflow, crashed, timed_out, threw, call_failed, probe_failed; Exception (cancelled).
  std::string pass(const std::string& options) const;

 private:
  StoredVerdict run(const std::string& options) const;

  std::shared_ptr<const Helper> helper_;
  std::string content_hash_;
  double seconds_;
  const VerdictStore& verdicts_;
  Events& events_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, std::optional<Refusal>> known_;  // by options
};

}  // namespace tenon::host
