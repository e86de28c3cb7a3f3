#include "host/plugins/find/discovery.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "catch.h"
#include "core/base/error.h"
#include "host/plugins/registry/registry.h"
#include "unit/host/plugins/plugin_folder.h"

using namespace tenon;
using namespace tenon::host;
using tenon::test::PluginFolder;

namespace {

nlohmann::json described(const Config& config, const std::string& name) {
  Events events;
  const Registry registry(config, events);
  const nlohmann::json all = registry.describe();
  for (const nlohmann::json& plugin : all["plugins"])
    if (plugin["name"] == name) return plugin;
  return {};
}

nlohmann::json directory_of(const Config& config, const std::string& path) {
  Events events;
  const nlohmann::json all = Registry(config, events).describe();
  for (const nlohmann::json& directory : all["directories"])
    if (directory["path"] == path) return directory;
  return {};
}

}  // namespace

TEST_CASE("making a registry reads manifests and loads nothing") {
  const PluginFolder folder;
  folder.add("abort_loading", {{"version", "2.5"}, {"description", "a sentence"}});
  const nlohmann::json plugin = described(folder.config(), "abort_loading");
  CHECK(plugin["state"] == "found");
  CHECK(plugin["kind"] == "backend");
  CHECK(plugin["version"] == "2.5");
  CHECK(plugin["description"] == "a sentence");
  CHECK(plugin["source"] == "plugins.paths");
}

TEST_CASE("directories that others may write are refused") {
  const PluginFolder folder;
  folder.add("good");
  const mode_t mode = GENERATE(0775, 0777, 01777);
  ::chmod(folder.path().c_str(), mode);
  const nlohmann::json directory = directory_of(folder.config(), folder.path());
  CHECK(directory["state"] == "refused");
  CHECK(directory["reason"] == "unsafe_directory");
  Events events;
  Registry registry(folder.config(), events);
  CHECK(registry.backend("good") == nullptr);
  CHECK(registry.why_no_backend("good").find("unsafe_directory") != std::string::npos);
}

TEST_CASE("a library or manifest that others may write is refused") {
  const PluginFolder folder;
  folder.add("good");
  const char* file = GENERATE("/good.so", "/good.json");
  ::chmod((folder.path() + file).c_str(), 0666);
  CHECK(tenon::test::verdict_on(folder.config(), "good")["reason"] == "unsafe_file");
}

TEST_CASE("a symbolic link may not lead out of the directory") {
  const PluginFolder folder, elsewhere;
  elsewhere.add_library("good");
  SECTION("absolute") { std::filesystem::create_symlink(elsewhere.path() + "/good.so", folder.path() + "/good.so"); }
  SECTION("relative") {
    const std::string name = std::filesystem::path(elsewhere.path()).filename();
    std::filesystem::create_symlink("../" + name + "/good.so", folder.path() + "/good.so");
  }
  folder.add_manifest("good");
  CHECK(tenon::test::verdict_on(folder.config(), "good")["reason"] == "path_escapes");
}

TEST_CASE("a library that is no regular file is refused") {
  const PluginFolder folder;
  ::mkfifo((folder.path() + "/good.so").c_str(), 0600);
  folder.add_manifest("good");
  CHECK(tenon::test::verdict_on(folder.config(), "good")["reason"] == "unsafe_file");
}

TEST_CASE("a missing library and a missing directory are named") {
  const PluginFolder folder;
  folder.add_manifest("good");
  CHECK(tenon::test::verdict_on(folder.config(), "good")["reason"] == "missing_library");
  Config config = folder.config();
  config.plugin_paths = {folder.path() + "/nowhere"};
  CHECK(directory_of(config, folder.path() + "/nowhere")["reason"] == "missing_directory");
}

TEST_CASE("of two plugins with one name the first in rank counts") {
  const PluginFolder first, second;
  first.add("good");
  second.add("good");
  Config config = first.config();
  config.plugin_paths = {first.path(), second.path()};
  const nlohmann::json verdict = tenon::test::verdict_on(config, "good");
  CHECK(verdict["reason"] == "duplicate_name");
  CHECK(verdict["path"] == second.path() + "/good.so");
  CHECK(verdict["text"].get<std::string>().find(first.path()) != std::string::npos);
  Events events;
  Registry registry(config, events);
  REQUIRE(registry.backend("good"));
  CHECK(registry.backend("good")->path == first.path() + "/good.so");
}

TEST_CASE("the environment's directories rank before the file's") {
  const PluginFolder first, second;
  first.add("good");
  second.add("good");
  Config config = first.config();
  config.environment_plugin_paths = {second.path()};
  Events events;
  Registry registry(config, events);
  REQUIRE(registry.backend("good"));
  CHECK(registry.backend("good")->path == second.path() + "/good.so");
}

TEST_CASE("a directory that is named twice is searched once") {
  const PluginFolder folder;
  folder.add("good");
  Config config = folder.config();
  config.plugin_paths = {folder.path(), folder.path() + "/."};
  CHECK(tenon::test::verdict_on(config, "good")["state"] == "loaded");
}

TEST_CASE("patterns select and disable plugins") {
  const PluginFolder folder;
  folder.add("good");
  folder.add("bad_magic");
  Config config = folder.config();
  SECTION("disable") { config.disable_plugins = {"go*"}; }
  SECTION("select") { config.select_plugins = {"bad_*"}; }
  CHECK(described(config, "good")["state"] == "disabled");
  CHECK(described(config, "bad_magic")["state"] == "found");
  Events events;
  Registry registry(config, events);
  CHECK(registry.backend("good") == nullptr);
  CHECK(registry.why_no_backend("good").find("is left out by plugins.") != std::string::npos);
}

TEST_CASE("a library dropped into a directory needs no manifest") {
  const PluginFolder folder;
  folder.add_library("good");
  folder.add_library("abort_loading");
  CHECK(described(folder.config(), "good")["kind"] == "unknown");
  Events events;
  Registry registry(folder.config(), events);
  REQUIRE(registry.backend("good"));
  CHECK(registry.backend("good")->kind == TENON_KIND_BACKEND);
  CHECK(registry.backend("abort_loading") == nullptr);
}

TEST_CASE("the hash that a manifest states is checked") {
  const PluginFolder folder;
  folder.add("good", {{"sha256", std::string(64, '0')}});
  CHECK(tenon::test::verdict_on(folder.config(), "good")["reason"] == "hash_mismatch");
}

TEST_CASE("drivers are programs and are listed") {
  const PluginFolder folder;
  folder.add_manifest("snake", {{"kind", "frontend"}, {"program", {"python3", "-m", "snake"}}, {"suffixes", {".snake"}}, {"provides", {"snake_backend"}}});
  Events events;
  Registry registry(folder.config(), events);
  CHECK(registry.driver_for("a/b.snake") == std::vector<std::string>{"python3", "-m", "snake"});
  CHECK(registry.driver_for("a/b.tir").empty());
  CHECK(registry.frontend_for("a/b.snake") == nullptr);
  CHECK(registry.describe_one("snake")["plugins"][0]["state"] == "found");
  const auto backends = registry.backend_names();
  CHECK(std::find(backends.begin(), backends.end(), "snake_backend") != backends.end());
}
