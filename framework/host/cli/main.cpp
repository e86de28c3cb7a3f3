// tenon: the command.
#include <algorithm>

#include <fmt/format.h>

#include "command.h"
#include "core/base/error.h"
#include "host/diagnostics/suggestion.h"

namespace {

using namespace tenon::cli;

/// Names of the options and subcommands that the deepest subcommand in use takes.
std::vector<std::string> words_taken(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  if (!chosen.empty()) return words_taken(*chosen.back());
  std::vector<std::string> words;
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  for (const CLI::App* subcommand : app.get_subcommands([](const CLI::App*) { return true; })) words.push_back(subcommand->get_name());
  return words;
}

/// The deepest subcommand that the line names.
const CLI::App& chosen_app(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : chosen_app(*chosen.back());
}

/// The word of the line that is most likely mistyped: an option that nothing takes, or what stands for a missing subcommand.
std::string unknown_word(const CLI::App& app, int count, char** arguments) {
  const CLI::App& chosen = chosen_app(app);
  const std::vector<std::string> known = words_taken(app);
  std::string plain;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    const std::string word = argument.substr(0, argument.find('='));
    if (std::find(known.begin(), known.end(), word) != known.end()) continue;
    if (word.starts_with("--") && !app.get_option_no_throw(word)) return word;
    if (!word.starts_with("-") && word != chosen.get_name() && plain.empty()) plain = word;
  }
  return chosen.get_require_subcommand_min() > 0 ? plain : std::string();
}

/// An option that is given nothing was meant to be given something: throws CommandError.
void refuse_empty_values(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options())
    for (const std::string& value : option->results())
      if (value.empty()) throw CommandError(kBadUsage, fmt::format("{} needs a value that is not empty", option->get_name()));
  for (const CLI::App* chosen : app.get_subcommands()) refuse_empty_values(*chosen);
}

int report_usage(const CLI::App& app, const CLI::ParseError& error, int count, char** arguments) {
  if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
  std::string hint;
  if (const std::string word = unknown_word(app, count, arguments); !word.empty()) {
    const std::string nearest = tenon::host::nearest_word(word, words_taken(app));
    if (!nearest.empty()) hint = fmt::format("; did you mean '{}'?", nearest);
  }
  fmt::print(stderr, "tenon: {}{}\nRun with --help for more information.\n", error.what(), hint);
  return kBadUsage;
}

}  // namespace

int main(int count, char** arguments) {
  Command command;
  CLI::App app("Compiles and runs tensor programs.", "tenon");
  app.require_subcommand(1);
  app.set_version_flag("--version", tenon_version());
  app.add_option("--config", command.config, "configuration file instead of tenon.toml")->type_name("FILE");
  app.add_option("--set", command.settings, "set a value of the configuration, for example --set runtime.threads=2")->type_name("SECTION.KEY=VALUE");
  app.add_option("--logs", command.logs, "logs to write to stderr, as TENON_LOGS")->type_name("NAMES");
  app.fallthrough();
  for (const auto add : {add_plugins, add_run, add_passes, add_ops, add_verify, add_explain, add_report, add_flags, add_cache, add_doctor}) add(app, command);
  try {
    app.parse(count, arguments);
    refuse_empty_values(app);
    return command.action();
  } catch (const CLI::ParseError& error) {
    return report_usage(app, error, count, arguments);
  } catch (const CommandError& error) {
    fmt::print(stderr, "tenon: {}\n", error.what());
    return error.status();
  } catch (const tenon::Exception& error) {
    fmt::print(stderr, "tenon: {}\n", error.what());
    return error.code() == tenon::Code::invalid_argument ? kBadUsage : kFailed;
  } catch (const std::exception& error) {
    fmt::print(stderr, "tenon: {}\n", error.what());
    return kFailed;
  }
}
