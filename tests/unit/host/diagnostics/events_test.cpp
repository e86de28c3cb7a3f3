#include "host/diagnostics/events.h"

#include <nlohmann/json.hpp>

#include <unistd.h>

#include <filesystem>

#include "catch.h"
#include "core/base/error.h"
#include "host/diagnostics/suggestion.h"

using namespace tenon;
using namespace tenon::host;

TEST_CASE("events are counted by kind and handed to the callback") {
  Events events;
  std::vector<nlohmann::json> seen;
  events.set_callback([](void* context, const char* json) { static_cast<std::vector<nlohmann::json>*>(context)->push_back(nlohmann::json::parse(json)); }, &seen);
  events.emit({{"kind", "compile"}, {"nodes", 3}});
  events.emit({{"kind", "compile"}, {"nodes", 4}});
  events.emit({{"kind", "fallback"}, {"text", "a \"quoted\" text"}});
  events.count("calls", 5);
  CHECK(seen.size() == 3);
  CHECK(seen[1]["nodes"] == 4);
  CHECK(events.counts() == nlohmann::json{{"compile", 2}, {"fallback", 1}, {"calls", 5}});
  events.reset_counts();
  CHECK(events.counts().empty());
}

TEST_CASE("a listener gets what the logs of its names say, whether they are on or not") {
  Log log;
  std::vector<std::string> heard;
  log.listen("passes,steps", [](void* context, const char* name, const char* origin, const char* text) {
    static_cast<std::vector<std::string>*>(context)->push_back(std::string(name) + "|" + origin + "|" + text);
  }, &heard);
  CHECK(log.wants("steps"));
  CHECK(log.names().empty());
  log.write(TENON_INFO, "steps", "llvm", "one");
  log.write(TENON_INFO, "guards", "", "nobody asked for it");
  log.set("guards");
  CHECK(log.wants("passes"));
  log.write(TENON_INFO, "passes", "", "two");
  CHECK(heard == std::vector<std::string>{"steps|llvm|one", "passes||two"});
  CHECK_THROWS_AS(log.listen("no_such_log", [](void*, const char*, const char*, const char*) {}, nullptr), Exception);
  CHECK(log.wants("passes"));
  log.listen("", nullptr, nullptr);
  CHECK_FALSE(log.wants("passes"));
  CHECK(log.wants("guards"));
}

TEST_CASE("logs are switched by name, and an unknown name is an error with a suggestion") {
  Log log;
  CHECK_FALSE(log.wants("passes"));
  log.set("passes, kernel_code");
  CHECK(log.wants("passes"));
  CHECK(log.wants("kernel_code"));
  CHECK_FALSE(log.wants("guards"));
  CHECK_FALSE(log.wants("no such log"));
  log.set("all");
  CHECK(log.names().size() == kLogNames.size());
  log.set("");
  CHECK(log.names().empty());
  CHECK_THROWS_WITH(log.set("kernel-cod"), Catch::Contains("unknown log 'kernel-cod'; did you mean 'kernel_code'?"));
}

TEST_CASE("the help of logs has a line for each, and is none") {
  const std::string help = log_help();
  for (const LogName& log : kLogNames) CHECK_THAT(help, Catch::Contains(fmt::format("  {}", log.name)) && Catch::Contains(log.meaning));
  Log log;
  log.set("help,passes");
  CHECK(log.names() == std::vector<std::string>{"passes"});
}

TEST_CASE("a listener takes what is said unasked, and nothing else") {
  static std::vector<std::string> heard;
  set_message_listener([](const char* log, const char* text) { heard.push_back(fmt::format("{}|{}", log, text)); });
  Events events;
  events.set_logs("passes");
  events.warn_once("fallbacks", "said once");
  events.warn_once("fallbacks", "said once");
  events.log(TENON_ERROR, "plugins", "words", "fails");
  events.log(TENON_INFO, "passes", "words", "a log that is on");
  set_message_listener(nullptr);
  events.warn_once("fallbacks", "for stderr");
  CHECK(heard == std::vector<std::string>{"fallbacks|said once", "plugins|words: fails"});
}

TEST_CASE("the nearest word is found, and only a near one") {
  const std::vector<std::string> known = {"llvm", "reference", "printer"};
  CHECK(nearest_word("lvm", known) == "llvm");
  CHECK(nearest_word("lvlm", known) == "llvm");
  CHECK(nearest_word("Reference", known) == "reference");
  CHECK(nearest_word("refernce", known) == "reference");
  CHECK(nearest_word("cuda", known).empty());
  CHECK(nearest_word("", known).empty());
}

TEST_CASE("a path that is not there is named with its nearest neighbour") {
  const auto folder = std::filesystem::temp_directory_path() / ("nearest_path_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder / "my_plugins");
  std::filesystem::create_directories(folder / "other");
  const std::string right = (folder / "my_plugins").string();
  CHECK(nearest_path_text((folder / "my_plugin").string()) == "; did you mean '" + right + "'?");
  CHECK(nearest_path_text((folder / "my_plgins").string() + "/") == "; did you mean '" + right + "'?");
  CHECK(nearest_path_text((folder / "elsewhere").string()).empty());
  CHECK(nearest_path_text(right).empty());
  CHECK(nearest_path_text("/no/such/folder/at_all").empty());
  std::filesystem::remove_all(folder);
}
