// tenon-conformance: runs the catalogue's samples against a backend. Exit status 0: nothing failed; 1: something did; 2: bad usage.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "core/base/error.h"
#include "report.h"

int main(int argc, char** argv) {
  using namespace tenon::conformance;
  SuiteOptions options;
  bool as_json = false;
  CLI::App app("Runs the samples of Tenon's op catalogue against a backend plugin, and compares with the definitions.");
  app.add_option("plugin", options.plugin, "The plugin's library")->required()->check(CLI::ExistingFile);
  app.add_option("--options", options.backend_options, "The backend's options, a JSON object")->capture_default_str();
  app.add_option("--filter", options.filter, "Only ops whose name matches one of these patterns, separated by commas")->capture_default_str();
  constexpr double kLongest = 1e6;
  app.add_option("--time-limit", options.time_limit, "Seconds that an op may take")->capture_default_str()->check(CLI::Range(0.001, kLongest));
  app.add_option("--jobs", options.jobs, "Processes at a time; 0: one a core")->capture_default_str()->check(CLI::Range(0, 4096));
  app.add_flag("--stop-at-failure", options.stop_at_failure, "Starts no further op after a failure");
  app.add_flag("--json", as_json, "Writes the report as JSON");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    return app.exit(problem) == 0 ? 0 : 2;
  }
  try {
    const SuiteReport report = run_suite(options);
    std::fputs((as_json ? json_report(report) : text_report(report)).c_str(), stdout);
    return all_well(report) ? 0 : 1;
  } catch (const tenon::Exception& failure) {
    std::fprintf(stderr, "tenon-conformance: %s\n", failure.what());
    return failure.code() == tenon::Code::not_found ? 2 : 1;
  }
}
