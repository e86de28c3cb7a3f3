// tenon flags
#include <fmt/format.h>

#include "command.h"

namespace tenon::cli {
namespace {

using nlohmann::json;

std::string shown(const json& value) {
  if (value.is_string()) return value.get<std::string>().empty() ? "\"\"" : value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string text;
  for (const json& item : value) text += (text.empty() ? "" : ",") + shown(item);
  return text.empty() ? "[]" : text;
}

int print_flags(const Command& command) {
  const Session session(command);
  const json flags = session.query("flags");
  if (command.json) {
    fmt::print("{}\n", flags.dump(2));
    return kDone;
  }
  for (const json& flag : flags) {
    fmt::print("{}  ({}; {})\n    {}\n    value: {} ({}); default: {}\n", flag["key"].get<std::string>(), flag["type"].get<std::string>(),
               flag["environment"].get<std::string>(), flag["meaning"].get<std::string>(), shown(flag["value"]), flag["origin"].get<std::string>(),
               shown(flag["default"]));
  }
  return kDone;
}

}  // namespace

void add_flags(CLI::App& app, Command& command) {
  CLI::App* flags = app.add_subcommand("flags", "every flag: configuration key, environment variable, meaning, value and where it is from")->fallthrough();
  add_json(*flags, command);
  flags->callback([&] { command.action = [&] { return print_flags(command); }; });
}

}  // namespace tenon::cli
