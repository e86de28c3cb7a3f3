#include "command.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/base/regular_file.h"
#include "host/diagnostics/suggestion.h"

namespace tenon::cli {

CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
  const auto wrong = [least, most](std::string& text) -> std::string {
    std::uint64_t number = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (problem == std::errc() && end == text.data() + text.size() && number >= least && number <= most) return {};
    return fmt::format("must be a whole number from {} to {}, not: {}", least, most, text);
  };
  return CLI::Validator(wrong, "");
}

void add_json(CLI::App& app, Command& command) { app.add_flag("--json", command.json, "print JSON"); }

Session::Session(const Command& command) {
  std::vector<std::string> settings = command.settings;
  if (!command.logs.empty()) settings.push_back("diagnostics.logs=" + command.logs);
  std::vector<const char*> overrides;
  for (const std::string& setting : settings) overrides.push_back(setting.c_str());
  const TenonSessionOptions options{sizeof options, command.config.empty() ? nullptr : command.config.c_str(), overrides.data(), overrides.size()};
  const std::int32_t code = tenon_session_create(&options, &session_);
  if (code == TENON_INVALID_ARGUMENT || code == TENON_NOT_FOUND) throw CommandError(kBadUsage, last_error_text());
  check(code);
}

nlohmann::json Session::query(const std::string& what) const {
  char* text = nullptr;
  const std::int32_t code = tenon_session_query(session_, what.c_str(), &text);
  if (code == TENON_NOT_FOUND) throw CommandError(kBadUsage, last_error_text());
  check(code);
  const nlohmann::json result = nlohmann::json::parse(text);
  tenon_free(text);
  return result;
}

std::string last_error_text() {
  const TenonFailure* failure = tenon_last_error();
  if (!failure) return "the host gives no reason";
  const std::string plugin = failure->plugin ? failure->plugin : "";
  return plugin.empty() ? failure->text : fmt::format("{}: {}", plugin, failure->text);
}

void check(std::int32_t code) {
  if (code != TENON_OK) throw CommandError(kFailed, last_error_text());
}

std::vector<std::string> words_of(const std::string& list) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : list + ",") {
    if (c != ',') {
      if (c != ' ') word += c;
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  return words;
}

void print_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}", row[i], i + 1 < row.size() ? widths[i] + 2 : 0);
    fmt::print("{}\n", line);
  }
}

std::pair<std::string, std::string> split_target(const std::string& target) {
  const std::size_t colon = target.rfind(':');
  if (colon == std::string::npos || target.find('/', colon) != std::string::npos) return {target, ""};
  if (colon == 0) throw CommandError(kBadUsage, fmt::format("no file stands before the colon: {}; a target is written file:function, for example model.py{}", target, target.size() > 1 ? target : ":forward"));
  return {target.substr(0, colon), target.substr(colon + 1)};
}

void check_file(const std::string& path) {
  if (const std::string why = why_not_readable(path); !why.empty())
    throw CommandError(kBadUsage, fmt::format("cannot read {}: {}{}", path, why, host::nearest_path_text(path)));
}

void hand_settings_on(const Command& command, const Session& session) {
  if (!command.config.empty()) ::setenv("TENON_CONFIG", command.config.c_str(), 1);
  if (!command.logs.empty()) ::setenv("TENON_LOGS", command.logs.c_str(), 1);
  const nlohmann::json flags = session.query("flags");
  for (const std::string& setting : command.settings) {
    const std::size_t equals = setting.find('=');
    for (const nlohmann::json& flag : flags)
      if (flag["key"] == setting.substr(0, equals)) ::setenv(flag["environment"].get<std::string>().c_str(), setting.substr(equals + 1).c_str(), 1);
  }
}

std::vector<std::vector<std::string>> drivers(const Session& session, const std::string& path) {
  std::vector<std::vector<std::string>> programs;
  const nlohmann::json all = session.query("plugins");
  for (const nlohmann::json& plugin : all["plugins"]) {
    const auto suffixes = plugin.value("suffixes", std::vector<std::string>());
    const auto reads = [&](const std::string& suffix) { return std::filesystem::path(path).filename().string().ends_with(suffix); };
    if (plugin["state"] == "found" && plugin.contains("program") && (path.empty() || std::any_of(suffixes.begin(), suffixes.end(), reads)))
      programs.push_back(plugin["program"].get<std::vector<std::string>>());
  }
  return programs;
}

void run_driver(const Command& command, const Session& session, const std::string& path, const std::vector<std::string>& arguments) {
  const auto programs = drivers(session, path);
  if (programs.empty()) return;
  std::vector<std::string> words = programs.front();
  words.insert(words.end(), arguments.begin(), arguments.end());
  hand_settings_on(command, session);
  execute(words);
}

std::string program_beside(const std::string& name) {
  std::error_code problem;
  const std::filesystem::path path = std::filesystem::canonical("/proc/self/exe", problem).parent_path() / name;
  return !problem && ::access(path.c_str(), X_OK) == 0 ? path.string() : std::string();
}

/// The program in bin of the environment whose lib holds this one: PREFIX/lib/…/tenon; empty when there is none.
static std::string program_of_environment(const std::string& name) {
  std::error_code problem;
  const std::filesystem::path own = std::filesystem::canonical("/proc/self/exe", problem);
  for (std::filesystem::path lib = own.parent_path(); !problem && lib.has_relative_path(); lib = lib.parent_path()) {
    if (lib.filename() != "lib" && lib.filename() != "lib64") continue;
    const std::filesystem::path program = lib.parent_path() / "bin" / name;
    if (::access(program.c_str(), X_OK) == 0) return program.string();
  }
  return {};
}

void execute(const std::vector<std::string>& given) {
  std::vector<std::string> words = given;
  if (words[0].find('/') == std::string::npos)
    if (std::string program = program_of_environment(words[0]); !program.empty()) words[0] = std::move(program);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::fflush(nullptr);
  ::execvp(arguments[0], arguments.data());
  throw CommandError(kFailed, fmt::format("cannot start {}: {}", words[0], std::strerror(errno)));
}

int execute_and_wait(const std::vector<std::string>& words) {
  constexpr int kDidNotStart = 127;
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      execute(words);
    } catch (const CommandError&) {
      ::_exit(kDidNotStart);
    }
  }
  int status = 0;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : kDidNotStart;
}

}  // namespace tenon::cli
