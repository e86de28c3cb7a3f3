// The whole conformance run: every sample of the catalogue, in every variation, a process for each op.
#pragma once

#include <string>
#include <vector>

#include "group_process.h"

namespace tenon::conformance {

struct SuiteOptions {
  std::string plugin;          // path of the library
  std::string backend_options = "{}";
  std::string filter = "*";    // globs on op names, separated by commas
  double time_limit = 60;      // seconds an op
  unsigned jobs = 0;           // processes at a time; 0: as many as the machine has cores
  bool stop_at_failure = false;  // start no further op after a failure
};

struct SuiteReport {
  std::string plugin, version;
  std::vector<CaseResult> results;
  double seconds = 0;
};

/// Runs the suite. Throws (invalid_argument) for what is no backend, (not_found) for a filter that no op matches.
SuiteReport run_suite(const SuiteOptions& options);

}  // namespace tenon::conformance
