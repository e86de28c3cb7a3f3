// What the subcommands of `tenon` share: options, the session, exit statuses.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "tenon/host.h"

namespace tenon::cli {

enum Status { kDone = 0, kFailed = 1, kBadUsage = 2 };

/// Ends the command with a message and an exit status.
class CommandError : public std::runtime_error {
 public:
  CommandError(Status status, const std::string& message) : std::runtime_error(message), status_(status) {}
  Status status() const { return status_; }

 private:
  Status status_;
};

/// The command line so far: options that several subcommands take, and what to do once all of it is parsed.
struct Command {
  std::string config;
  std::vector<std::string> settings;  // "section.key=value"
  std::string logs;
  bool json = false;
  std::function<int()> action;
};

/// Accepts whole numbers from `least` to `most`.
CLI::Validator whole_number(std::uint64_t least, std::uint64_t most);
/// What --seed takes: what NumPy and torch both do.
inline constexpr std::uint64_t kLargestSeed = 0xffffffffu;

/// Adds the flag --json to a subcommand.
void add_json(CLI::App& app, Command& command);

// One a subcommand, each in the file of its name.
void add_plugins(CLI::App& app, Command& command);
void add_run(CLI::App& app, Command& command);
void add_passes(CLI::App& app, Command& command);
void add_ops(CLI::App& app, Command& command);
void add_verify(CLI::App& app, Command& command);
void add_explain(CLI::App& app, Command& command);
void add_report(CLI::App& app, Command& command);
void add_flags(CLI::App& app, Command& command);
void add_cache(CLI::App& app, Command& command);
void add_doctor(CLI::App& app, Command& command);

/// A session made with the command's options. Throws CommandError: bad usage when the configuration is wrong.
class Session {
 public:
  explicit Session(const Command& command);
  ~Session() { tenon_session_release(session_); }
  Session(const Session&) = delete;

  TenonSession* get() const { return session_; }
  nlohmann::json query(const std::string& what) const;

 private:
  TenonSession* session_ = nullptr;
};

/// The last error of the host as one line: "plugin: text".
std::string last_error_text();
/// Throws CommandError (failed) with the host's last error unless `code` is TENON_OK.
void check(std::int32_t code);

/// Comma-separated words.
std::vector<std::string> words_of(const std::string& list);

/// Prints rows as columns, two spaces apart; the last column is wrapped by nobody.
void print_table(const std::vector<std::vector<std::string>>& rows);

/// "part/of/path.py:function" → {path, function}; no function for a plain path.
std::pair<std::string, std::string> split_target(const std::string& target);
/// Throws CommandError (bad usage) unless the file can be read.
void check_file(const std::string& path);

/// The programs of drivers that read the file, each with its first arguments, the preferred one first; all drivers' where `path` is empty.
std::vector<std::vector<std::string>> drivers(const Session& session, const std::string& path);
/// Puts the command's settings into the environment: a driver reads the configuration by itself.
void hand_settings_on(const Command& command, const Session& session);
/// Replaces this process by the driver that reads the target's file, with these arguments and the command's settings in the
/// environment; returns only when no driver reads it.
void run_driver(const Command& command, const Session& session, const std::string& path, const std::vector<std::string>& arguments);

/// The program of that name beside this one; empty when there is none.
std::string program_beside(const std::string& name);
/// Replaces this process. A program without a path is taken from the environment that this command is installed in (bin beside the lib
/// that holds it) where it has it, else from PATH. Throws CommandError (failed) when the program does not start.
[[noreturn]] void execute(const std::vector<std::string>& words);
/// The same in a process of its own. Gives its exit status; 127 where it does not start.
int execute_and_wait(const std::vector<std::string>& words);

}  // namespace tenon::cli
