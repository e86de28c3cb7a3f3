// tenon explain FILE:FUNCTION
#include <fmt/format.h>

#include "command.h"

namespace tenon::cli {
namespace {

struct ExplainOptions {
  std::string target;
  std::vector<std::string> inputs, sizes;
  std::uint64_t seed = 0;
};

int explain(const Command& command, const ExplainOptions& options) {
  const std::string& target = options.target;
  const auto [path, function] = split_target(target);
  if (function.empty()) throw CommandError(kBadUsage, fmt::format("a target is written file:function, for example model.py:forward, not: {}", target));
  check_file(path);
  const Session session(command);
  std::vector<std::string> arguments = {"explain", target};
  for (const std::string& input : options.inputs) arguments.insert(arguments.end(), {"--input", input});
  for (const std::string& size : options.sizes) arguments.insert(arguments.end(), {"--size", size});
  if (options.seed != 0) arguments.insert(arguments.end(), {"--seed", std::to_string(options.seed)});
  if (command.json) arguments.push_back("--json");
  run_driver(command, session, path, arguments);
  throw CommandError(kBadUsage, fmt::format("no driver explains such files: {}", path));
}

}  // namespace

void add_explain(CLI::App& app, Command& command) {
  CLI::App* explain_app = app.add_subcommand("explain", "what is captured of a function, where it breaks, which guards hold")->fallthrough();
  static ExplainOptions options;
  explain_app->add_option("TARGET", options.target, "the function")->required()->type_name("FILE:FUNCTION");
  explain_app->add_option("--input", options.inputs, "the value of an argument")->type_name("NAME=FILE.npy");
  explain_app->add_option("--size", options.sizes, "the value of an argument that is a whole number")->type_name("NAME=NUMBER");
  explain_app->add_option("--seed", options.seed, "of random numbers")->check(whole_number(0, kLargestSeed))->type_name("NUMBER");
  add_json(*explain_app, command);
  explain_app->callback([&] { command.action = [&] { return explain(command, options); }; });
}

}  // namespace tenon::cli
