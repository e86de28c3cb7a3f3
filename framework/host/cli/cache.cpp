// tenon cache stats | clear
#include <fmt/format.h>

#include "command.h"

namespace tenon::cli {
namespace {

using nlohmann::json;

std::string words_of_unusable(const json& cache) {
  return fmt::format("compiled code is not kept: {} {}", cache["directory"].get<std::string>(), cache["text"].get<std::string>());
}

int print_cache(const Command& command) {
  const Session session(command);
  const json cache = session.query("cache");
  if (command.json) {
    fmt::print("{}\n", cache.dump(2));
    return kDone;
  }
  if (!cache["usable"].get<bool>()) {
    fmt::print("{}\n", words_of_unusable(cache));
    return kDone;
  }
  fmt::print("{}: {} entries, {} of at most {} bytes\n", cache["directory"].get<std::string>(), cache["entries"].get<std::uint64_t>(),
             cache["bytes"].get<std::uint64_t>(), cache["limit"].get<std::uint64_t>());
  return kDone;
}

int clear_cache(const Command& command) {
  const Session session(command);
  if (const json cache = session.query("cache"); !cache["usable"].get<bool>()) throw CommandError(kFailed, words_of_unusable(cache));
  std::uint64_t removed = 0;
  check(tenon_session_clear_cache(session.get(), &removed));
  if (command.json) fmt::print("{}\n", json{{"removed", removed}}.dump(2));
  else fmt::print("{} {} removed\n", removed, removed == 1 ? "entry" : "entries");
  return kDone;
}

}  // namespace

void add_cache(CLI::App& app, Command& command) {
  CLI::App* cache = app.add_subcommand("cache", "the compiled code that is kept on disk")->require_subcommand(1)->fallthrough();
  CLI::App* stats = cache->add_subcommand("stats", "where it is, how much there is, and the limit")->fallthrough();
  add_json(*stats, command);
  stats->callback([&] { command.action = [&] { return print_cache(command); }; });
  CLI::App* clear = cache->add_subcommand("clear", "removes all of it, and what the probe said of plugins")->fallthrough();
  add_json(*clear, command);
  clear->callback([&] { command.action = [&] { return clear_cache(command); }; });
}

}  // namespace tenon::cli
