#include "suite.h"

#include <fnmatch.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <sstream>
#include <thread>

#include "core/ops/catalog.h"
#include "loaded_plugin.h"

namespace tenon::conformance {
namespace {

std::string dtype_of(const ops::Sample& sample) {
  for (const ops::SampleOperand& operand : sample.operands)
    if (!operand.literal) return std::string(name_of(operand.dtype));
  return "none";
}

Outcome run_one(const Variation& variation, const Trial& trial) {
  try {
    return variation.run(trial);
  } catch (const BackendFailure& failure) {
    return {Status::failed, failure.what()};
  } catch (const std::exception& failure) {
    return {Status::failed, fmt::format("the kit itself failed: {}", failure.what())};
  }
}

/// All variations of one sample, until the plain run shows that the others would say nothing.
void run_sample(const Trial& trial, ResultSink& sink) {
  for (const Variation& variation : variations()) {
    CaseResult result{trial.op.name, trial.sample.name, variation.name, dtype_of(trial.sample), {}};
    sink.start(result);
    result.outcome = run_one(variation, trial);
    if (result.outcome.status != Status::not_applicable) sink.finish(result);
    if (&variation == &variations().front() && result.outcome.status != Status::passed) return;
  }
}

void run_op(const SuiteOptions& options, const ops::Op& op, ResultSink& sink) {
  const TenonPlugin& plugin = load_plugin(options.plugin, kit_host());
  const BackendUnderTest backend(plugin, options.backend_options);
  for (const ops::Sample& sample : ops::samples_of(op)) run_sample({backend, op, sample}, sink);
}

std::vector<const ops::Op*> chosen_ops(const std::string& filter) {
  std::vector<const ops::Op*> chosen;
  for (const ops::Op& op : ops::all_ops()) {
    std::istringstream patterns(filter);
    for (std::string pattern; std::getline(patterns, pattern, ',');) {
      if (fnmatch(pattern.c_str(), op.name.c_str(), 0) != 0) continue;
      chosen.push_back(&op);
      break;
    }
  }
  if (chosen.empty()) throw Exception(error(Code::not_found, "no op matches '{}'", filter));
  return chosen;
}

/// Waits for one of the groups, and takes the results of those that have ended.
void wait_for_some(std::vector<GroupProcess>& running, std::vector<CaseResult>& results) {
  std::vector<pollfd> waiting;
  for (const GroupProcess& group : running) waiting.push_back({group.descriptor(), POLLIN, 0});
  poll(waiting.data(), waiting.size(), 100);
  for (std::size_t i = waiting.size(); i-- > 0;) {
    running[i].check_time();
    if (!waiting[i].revents || !running[i].read_some()) continue;
    const auto& done = running[i].results();
    results.insert(results.end(), done.begin(), done.end());
    std::vector<GroupProcess> rest;
    for (std::size_t other = 0; other < running.size(); ++other)
      if (other != i) rest.push_back(std::move(running[other]));
    running.swap(rest);
  }
}

bool has_failure(const std::vector<CaseResult>& results) {
  return std::ranges::any_of(results, [](const CaseResult& result) { return result.outcome.status == Status::failed; });
}

/// Loads the plugin in a child, which reports its name; the kit's own process never runs a plugin's code.
std::pair<std::string, std::string> identify(const SuiteOptions& options) {
  GroupProcess probe("loading", [&](ResultSink& sink) {
    CaseResult result{"loading", "", "", "", {}};
    try {
      const TenonPlugin& plugin = load_plugin(options.plugin, kit_host());
      result.sample = plugin.name;
      result.variation = plugin.version;
      if (plugin.kind != TENON_KIND_BACKEND) result.outcome = {Status::failed, fmt::format("{} is no backend; the kit tests backends", plugin.name)};
    } catch (const std::exception& failure) {
      result.outcome = {Status::failed, failure.what()};
    }
    sink.finish(result);
  }, options.time_limit);
  std::vector<GroupProcess> running;
  running.push_back(std::move(probe));
  std::vector<CaseResult> results;
  while (!running.empty()) wait_for_some(running, results);
  for (const CaseResult& result : results)
    if (result.outcome.status == Status::failed) throw Exception(error(Code::invalid_argument, "{}: {}", options.plugin, result.outcome.text));
  return {results.at(0).sample, results.at(0).variation};
}

}  // namespace

SuiteReport run_suite(const SuiteOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const auto chosen = chosen_ops(options.filter);
  SuiteReport report;
  std::tie(report.plugin, report.version) = identify(options);

  const unsigned jobs = options.jobs ? options.jobs : std::max(1u, std::thread::hardware_concurrency());
  std::vector<GroupProcess> running;
  for (const ops::Op* op : chosen) {
    while (running.size() >= jobs) wait_for_some(running, report.results);
    if (options.stop_at_failure && has_failure(report.results)) break;
    running.emplace_back(op->name, [&](ResultSink& sink) { run_op(options, *op, sink); }, options.time_limit);
  }
  while (!running.empty()) wait_for_some(running, report.results);
  std::stable_sort(report.results.begin(), report.results.end(), [](const CaseResult& a, const CaseResult& b) { return a.op < b.op; });
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace tenon::conformance
