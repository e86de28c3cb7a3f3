// tenon plugins list | why NAME | test FILE.so
#include <fmt/format.h>

#include "command.h"

namespace tenon::cli {
namespace {

using nlohmann::json;

std::string text_of(const json& object, const char* key) { return object.contains(key) && object[key].is_string() ? object[key].get<std::string>() : ""; }

std::string what_of(const json& plugin) {
  if (plugin.contains("reason")) return fmt::format("{}: {}", text_of(plugin, "reason"), text_of(plugin, "text"));
  return text_of(plugin, "description");
}

int list_plugins(const Command& command) {
  const Session session(command);
  const json all = session.query("plugins");
  if (command.json) {
    fmt::print("{}\n", all.dump(2));
    return kDone;
  }
  std::vector<std::vector<std::string>> rows = {{"NAME", "KIND", "STATE", "VERSION", "FROM", ""}};
  for (const json& plugin : all["plugins"])
    rows.push_back({text_of(plugin, "name"), text_of(plugin, "kind"), text_of(plugin, "state"), text_of(plugin, "version"), text_of(plugin, "source"), what_of(plugin)});
  print_table(rows);
  for (const json& directory : all["directories"])
    if (directory.contains("reason"))
      fmt::print("not searched: {} ({}): {}: {}\n", text_of(directory, "path"), text_of(directory, "source"), text_of(directory, "reason"), text_of(directory, "text"));
  return kDone;
}

/// Success when a plugin of that name can be used.
int why(const Command& command, const std::string& name) {
  const Session session(command);
  const json found = session.query("plugin:" + name);
  bool usable = false;
  for (const json& plugin : found["plugins"]) usable |= plugin["state"] == "loaded" || (plugin["state"] == "found" && plugin.contains("program"));
  if (command.json) {
    fmt::print("{}\n", found.dump(2));
    return usable ? kDone : kFailed;
  }
  for (const json& plugin : found["plugins"]) {
    fmt::print("{} ({}): {}\n", text_of(plugin, "name"), text_of(plugin, "kind"), text_of(plugin, "state"));
    if (!text_of(plugin, "path").empty()) fmt::print("  {}\n", text_of(plugin, "path"));
    for (const json& decision : plugin["decisions"]) fmt::print("  - {}\n", decision.get<std::string>());
  }
  return usable ? kDone : kFailed;
}

/// The conformance kit is a program of its own: it runs each group of cases in its own process.
int test(const Command& command, const std::string& file, const std::vector<std::string>& more) {
  check_file(file);
  const std::string kit = program_beside("tenon-conformance");
  if (kit.empty()) throw CommandError(kFailed, "the conformance kit (tenon-conformance) is not installed beside this command");
  std::vector<std::string> words = {kit, file};
  if (command.json) words.push_back("--json");
  words.insert(words.end(), more.begin(), more.end());
  execute(words);
}

}  // namespace

void add_plugins(CLI::App& app, Command& command) {
  CLI::App* plugins = app.add_subcommand("plugins", "the plugins there are, and why one is not used")->require_subcommand(1)->fallthrough();
  CLI::App* list_app = plugins->add_subcommand("list", "all plugins, from where, in which state")->fallthrough();
  add_json(*list_app, command);
  list_app->callback([&] { command.action = [&] { return list_plugins(command); }; });

  CLI::App* why_app = plugins->add_subcommand("why", "loads a plugin and tells every decision")->fallthrough();
  static std::string name;
  why_app->add_option("NAME", name, "the plugin")->required();
  add_json(*why_app, command);
  why_app->callback([&] { command.action = [&] { return why(command, name); }; });

  CLI::App* test_app = plugins->add_subcommand("test", "runs the conformance cases of all ops against a backend")->fallthrough();
  static std::string file, options, filter, limit;
  test_app->add_option("FILE", file, "the library")->required()->type_name("FILE.so");
  test_app->add_option("--options", options, "options for the backend, a JSON object")->type_name("JSON");
  test_app->add_option("--filter", filter, "only the ops that match")->type_name("GLOB");
  test_app->add_option("--time-limit", limit, "seconds a group of cases may take")->type_name("SECONDS");
  add_json(*test_app, command);
  test_app->callback([&] {
    command.action = [&] {
      std::vector<std::string> more;
      for (const auto& [flag, value] : {std::pair("--options", options), std::pair("--filter", filter), std::pair("--time-limit", limit)})
        if (!value.empty()) more.insert(more.end(), {flag, value});
      return test(command, file, more);
    };
  });
}

}  // namespace tenon::cli
