#include "report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace tenon::conformance {
namespace {

struct Counts {
  int passed = 0, failed = 0, not_claimed = 0;

  void add(Status status) {
    if (status == Status::passed) ++passed;
    if (status == Status::failed) ++failed;
    if (status == Status::not_claimed) ++not_claimed;
  }
};

using CountsByDtype = std::map<std::string, Counts>;

std::map<std::string, CountsByDtype> by_op(const SuiteReport& report) {
  std::map<std::string, CountsByDtype> counts;
  for (const CaseResult& result : report.results) counts[result.op][result.dtype].add(result.outcome.status);
  return counts;
}

Counts total(const SuiteReport& report) {
  Counts counts;
  for (const CaseResult& result : report.results) counts.add(result.outcome.status);
  return counts;
}

std::string op_row(const std::string& op, const CountsByDtype& dtypes) {
  Counts counts;
  std::string claimed;
  for (const auto& [dtype, of_dtype] : dtypes) {
    counts.passed += of_dtype.passed;
    counts.failed += of_dtype.failed;
    counts.not_claimed += of_dtype.not_claimed;
    if (of_dtype.passed || of_dtype.failed) claimed += (claimed.empty() ? "" : " ") + dtype + (of_dtype.failed ? "!" : "");
  }
  return fmt::format("{:<28}{:>8}{:>8}{:>13}   {}\n", op, counts.passed, counts.failed, counts.not_claimed, claimed);
}

nlohmann::json to_json(const Counts& counts) {
  return {{"passed", counts.passed}, {"failed", counts.failed}, {"not_claimed", counts.not_claimed}};
}

}  // namespace

std::string text_report(const SuiteReport& report) {
  std::string text = fmt::format("{:<28}{:>8}{:>8}{:>13}   dtypes (! has failures)\n", "op", "passed", "failed", "not claimed");
  int unclaimed_ops = 0;
  for (const auto& [op, dtypes] : by_op(report)) {
    const bool is_claimed = std::ranges::any_of(dtypes, [](const auto& entry) { return entry.second.passed || entry.second.failed; });
    if (is_claimed) text += op_row(op, dtypes);
    else ++unclaimed_ops;
  }
  if (unclaimed_ops) text += fmt::format("and {} ops of which it claims nothing\n", unclaimed_ops);
  for (const CaseResult& result : report.results)
    if (result.outcome.status == Status::failed)
      text += fmt::format("failed: {} / {} / {}: {}\n", result.op, result.sample, result.variation, result.outcome.text);
  const Counts counts = total(report);
  return text + fmt::format("{} {}: {} passed, {} failed, {} not claimed, in {:.1f} s\n", report.plugin, report.version, counts.passed,
                            counts.failed, counts.not_claimed, report.seconds);
}

std::string json_report(const SuiteReport& report) {
  nlohmann::json json = to_json(total(report));
  json["plugin"] = report.plugin;
  json["version"] = report.version;
  json["seconds"] = report.seconds;
  json["by_op"] = nlohmann::json::object();
  for (const auto& [op, dtypes] : by_op(report))
    for (const auto& [dtype, counts] : dtypes) json["by_op"][op][dtype] = to_json(counts);
  json["failures"] = nlohmann::json::array();
  json["not_claimed_reasons"] = nlohmann::json::object();
  for (const CaseResult& result : report.results) {
    if (result.outcome.status == Status::failed)
      json["failures"].push_back({{"op", result.op}, {"sample", result.sample}, {"variation", result.variation}, {"dtype", result.dtype}, {"text", result.outcome.text}});
    if (result.outcome.status == Status::not_claimed) {
      const std::string reason = result.outcome.text.substr(0, result.outcome.text.find(':'));
      json["not_claimed_reasons"][reason] = json["not_claimed_reasons"].value(reason, 0) + 1;
    }
  }
  return json.dump(2) + "\n";
}

bool all_well(const SuiteReport& report) { return total(report).failed == 0; }

}  // namespace tenon::conformance
