#include "host/plugins/isolation/probe.h"

#include <chrono>

namespace tenon::host {
namespace {

using Clock = std::chrono::steady_clock;

ProbeVerdict verdict_of(const nlohmann::json& said) {
  ProbeVerdict verdict;
  for (const TenonKind kind : {TENON_KIND_FRONTEND, TENON_KIND_PASSES})
    if (said.at("kind") == kind_name(kind)) verdict.kind = kind;
  verdict.passes = said.at("passes").get<std::vector<std::string>>();
  return verdict;
}

}  // namespace

StoredVerdict Probe::run(const std::string& options) const {
  StoredVerdict verdict;
  try {
    verdict.usable = verdict_of(helper_->ask({{"call", "try"}, {"create_options", options}}, {}, seconds_).said);
  } catch (const Refused& refused) {
    verdict.refusal = refused.refusal();
  } catch (const nlohmann::json::exception& problem) {
    verdict.refusal = {"probe_failed", fmt::format("gave a wrong answer to the trial: {}", problem.what())};
  }
  return verdict;
}

std::string Probe::pass(const std::string& options) const {
  const std::lock_guard lock(mutex_);
  if (const auto known = known_.find(options); known != known_.end()) {
    if (known->second) throw Refused(*known->second);
    return "it was tried with these options";
  }
  std::string how = "the verdict of an earlier probe is remembered";
  std::optional<StoredVerdict> verdict = verdicts_.find(content_hash_, helper_->manifest(), options);
  if (!verdict) {
    const auto start = Clock::now();
    verdict = run(options);
    const double milliseconds = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    how = fmt::format("probed in {:.1f} ms", milliseconds);
    events_.emit({{"kind", "plugin_probed"}, {"plugin", helper_->manifest().name}, {"usable", verdict->usable.has_value()}, {"milliseconds", milliseconds}});
    verdicts_.store(content_hash_, helper_->manifest(), options, *verdict);
  }
  known_[options] = verdict->usable ? std::nullopt : std::optional(verdict->refusal);
  if (!verdict->usable) throw Refused(verdict->refusal);
  return how;
}

}  // namespace tenon::host
