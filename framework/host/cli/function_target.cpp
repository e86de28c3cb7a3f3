#include "function_target.h"

#include <fmt/format.h>

namespace tenon::cli {

void add_function_target(CLI::App& app, FunctionTarget& target) {
  app.add_option("TARGET", target.target, "the function")->required()->type_name("FILE:FUNCTION");
  app.add_option("--input", target.inputs, "the value of an argument")->type_name("NAME=FILE.npy");
  app.add_option("--size", target.sizes, "the value of an argument that is a whole number")->type_name("NAME=NUMBER");
  app.add_option("--seed", target.seed, "of random numbers")->check(whole_number(0, kLargestSeed))->type_name("NUMBER");
}

void hand_to_driver(const Command& command, const std::string& word, const FunctionTarget& target, const std::vector<std::string>& more) {
  const auto [path, function] = split_target(target.target);
  if (function.empty()) throw CommandError(kBadUsage, fmt::format("a target is written file:function, for example model.py:forward, not: {}", target.target));
  check_file(path);
  const Session session(command);
  std::vector<std::string> arguments = {word, target.target};
  for (const std::string& input : target.inputs) arguments.insert(arguments.end(), {"--input", input});
  for (const std::string& size : target.sizes) arguments.insert(arguments.end(), {"--size", size});
  if (target.seed != 0) arguments.insert(arguments.end(), {"--seed", std::to_string(target.seed)});
  if (command.json) arguments.push_back("--json");
  arguments.insert(arguments.end(), more.begin(), more.end());
  run_driver(command, session, path, arguments);
  throw CommandError(kBadUsage, fmt::format("no driver reads such files: {}", path));
}

}  // namespace tenon::cli
