// tenon report FILE:FUNCTION
#include "function_target.h"

namespace tenon::cli {
namespace {

constexpr std::uint64_t kMostRuns = 1'000'000;

}  // namespace

void add_report(CLI::App& app, Command& command) {
  CLI::App* report = app.add_subcommand("report", "what explain tells, and kernels with their times and memory, as one HTML file")->fallthrough();
  static FunctionTarget target;
  static std::string out;
  static int runs = 2;
  add_function_target(*report, target);
  report->add_option("--out", out, "where; tenon-report.html in the working directory where it is not given")->type_name("FILE.html");
  report->add_option("--runs", runs, "how often the function is called; times of a later run stand beside those of the first")->check(whole_number(1, kMostRuns))->type_name("NUMBER");
  add_json(*report, command);
  report->callback([&] {
    command.action = [&]() -> int {
      std::vector<std::string> more = {"--runs", std::to_string(runs)};
      if (!out.empty()) more.insert(more.end(), {"--out", out});
      hand_to_driver(command, "report", target, more);
    };
  });
}

}  // namespace tenon::cli
