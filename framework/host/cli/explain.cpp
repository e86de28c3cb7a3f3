// tenon explain FILE:FUNCTION
#include "function_target.h"

namespace tenon::cli {

void add_explain(CLI::App& app, Command& command) {
  CLI::App* explain = app.add_subcommand("explain", "what is captured of a function, where it breaks, which guards hold")->fallthrough();
  static FunctionTarget target;
  add_function_target(*explain, target);
  add_json(*explain, command);
  explain->callback([&] { command.action = [&]() -> int { hand_to_driver(command, "explain", target); }; });
}

}  // namespace tenon::cli
