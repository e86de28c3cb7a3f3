// tenon doctor
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "command.h"

namespace tenon::cli {
namespace {

using nlohmann::json;

void print_sections(const json& sections) {
  for (const auto& [section, entries] : sections.items()) {
    fmt::print("{}\n", section);
    for (const auto& [name, text] : entries.items()) fmt::print("  {:<14} {}\n", name, text.get<std::string>());
  }
}

/// A wrong configuration is a finding, too: the report says it.
json host_part(const Command& command) {
  try {
    return Session(command).query("doctor");
  } catch (const CommandError& error) {
    return {{"configuration", {{"refused", error.what()}}}, {"tenon", {{"version", tenon_version()}}}};
  }
}

/// What a driver says holds the host's part. Where none answers, that is all there is.
int report(const Command& command) {
  try {
    const Session session(command);
    hand_settings_on(command, session);
    for (std::vector<std::string> words : drivers(session, "")) {
      words.push_back("doctor");
      if (command.json) words.push_back("--json");
      if (execute_and_wait(words) == 0) return kDone;
      fmt::print(stderr, "tenon: {} does not answer; what follows is without it\n", fmt::join(words, " "));
    }
  } catch (const CommandError&) {
    // the host's part says it
  }
  const json found = host_part(command);
  if (command.json) fmt::print("{}\n", found.dump(2));
  else print_sections(found);
  return kDone;
}

}  // namespace

void add_doctor(CLI::App& app, Command& command) {
  CLI::App* doctor = app.add_subcommand("doctor", "what a bug report should say: versions, machine, plugins, cache")->fallthrough();
  add_json(*doctor, command);
  doctor->callback([&] { command.action = [&] { return report(command); }; });
}

}  // namespace tenon::cli
