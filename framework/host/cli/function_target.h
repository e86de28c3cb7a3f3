// What subcommands share that a driver answers for a function of a file: the options that give its arguments, and handing them on.
#pragma once

#include <string>
#include <vector>

#include "command.h"

namespace tenon::cli {

/// FILE:FUNCTION and the values of its arguments, as on the command line.
struct FunctionTarget {
  std::string target;
  std::vector<std::string> inputs, sizes;
  std::uint64_t seed = 0;
};

/// Adds TARGET, --input, --size and --seed to a subcommand.
void add_function_target(CLI::App& app, FunctionTarget& target);

/// Replaces this process by the driver that reads the file: subcommand `word`, the target, and what else it takes. Throws CommandError (bad usage) for what is no
/// FILE:FUNCTION, a file that cannot be read, or one that no driver reads.
[[noreturn]] void hand_to_driver(const Command& command, const std::string& word, const FunctionTarget& target, const std::vector<std::string>& more = {});

}  // namespace tenon::cli
