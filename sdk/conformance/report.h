// What a conformance run found, for people and for programs.
#pragma once

#include <string>

#include "suite.h"

namespace tenon::conformance {

/// Counts by op and dtype, then each failure. A sample that the backend does not claim counts once.
std::string text_report(const SuiteReport& report);
/// {"plugin", "version", "seconds", "passed", "failed", "not_claimed", "by_op": {op: {dtype: {…counts}}}, "failures": […],
/// "not_claimed_reasons": {reason: count}}
std::string json_report(const SuiteReport& report);
/// True when nothing failed.
bool all_well(const SuiteReport& report);

}  // namespace tenon::conformance
