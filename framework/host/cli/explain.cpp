// tenon explain FILE:FUNCTION
#include <fmt/format.h>

#include "command.h"

namespace tenon::cli {
namespace {

int explain(const Command& command, const std::string& target) {
  const auto [path, function] = split_target(target);
  if (function.empty()) throw CommandError(kBadUsage, fmt::format("a target is written file:function, for example model.py:forward, not: {}", target));
  check_file(path);
  const Session session(command);
  std::vector<std::string> arguments = {"explain", target};
  if (command.json) arguments.push_back("--json");
  run_driver(command, session, path, arguments);
  throw CommandError(kBadUsage, fmt::format("no driver explains such files: {}", path));
}

}  // namespace

void add_explain(CLI::App& app, Command& command) {
  CLI::App* explain_app = app.add_subcommand("explain", "what is captured of a function, where it breaks, which guards hold")->fallthrough();
  static std::string target;
  explain_app->add_option("TARGET", target, "the function")->required()->type_name("FILE:FUNCTION");
  add_json(*explain_app, command);
  explain_app->callback([&] { command.action = [&] { return explain(command, target); }; });
}

}  // namespace tenon::cli
