#include "host/config/config.h"

#include <stdlib.h>

#include <nlohmann/json.hpp>

#include "catch.h"
#include "core/base/error.h"
#include "host/config/flags.h"
#include "host/plugins/registry/registry.h"
#include "unit/host/plugins/plugin_folder.h"

using namespace tenon;
using namespace tenon::host;
using tenon::test::PluginFolder;

namespace {

/// Loads a configuration from a text, as the file tenon.toml of the folder, with overrides.
Config load(const PluginFolder& folder, std::string_view text, std::vector<const char*> overrides = {}) {
  folder.write("tenon.toml", text);
  const std::string file = folder.path() + "/tenon.toml";
  const TenonSessionOptions options{sizeof options, file.c_str(), overrides.data(), overrides.size()};
  return Config::load(&options);
}

/// The message of the error that loading (and checking the names against the plugins there are) gives, without the folder's path.
std::string error_of(std::string_view text, std::vector<const char*> overrides = {}) {
  const PluginFolder folder;
  folder.add("good", {{"options", {{"fast_paths", {{"type", "boolean"}}}}}});
  try {
    Config config = load(folder, text, std::move(overrides));
    config.plugin_paths = {folder.path()};
    Events events;
    Registry(config, events).check(config);
  } catch (const Exception& error) {
    CHECK(error.code() == Code::invalid_argument);
    std::string message = error.what();
    const std::string prefix = folder.path() + "/";
    if (message.rfind(prefix, 0) == 0) message.erase(0, prefix.size());
    return message;
  }
  return "none";
}

struct Variable {
  const char* name;
  Variable(const char* n, const char* value) : name(n) { setenv(n, value, 1); }
  ~Variable() { unsetenv(name); }
};

}  // namespace

TEST_CASE("an argument beats the environment, which beats the file") {
  const PluginFolder folder;
  const char* text = "[runtime]\nthreads = 3\n[passes]\nverify = true\npipeline = [\"a\", \"b\"]\n";
  CHECK(load(folder, text).threads == 3);
  CHECK(load(folder, text).origin_of("runtime.threads").text == folder.path() + "/tenon.toml:2");
  const Variable variable("TENON_THREADS", "5");
  CHECK(load(folder, text).threads == 5);
  CHECK(load(folder, text).origin_of("runtime.threads").text == "TENON_THREADS");
  CHECK(load(folder, text, {"runtime.threads=7"}).threads == 7);
  CHECK(load(folder, text, {"runtime.threads=7"}).origin_of("runtime.threads").text == "argument");
  CHECK(load(folder, text).verify_passes);
  CHECK(load(folder, text).pipeline == std::vector<std::string>{"a", "b"});
  CHECK(load(folder, text, {"passes.pipeline=x, y"}).pipeline == std::vector<std::string>{"x", "y"});
}

TEST_CASE("paths in a file are relative to the file, those of the environment stand beside them") {
  const PluginFolder folder;
  const Variable variable("TENON_PLUGIN_PATH", "/one:/two");
  const Config config = load(folder, "[plugins]\npaths = [\"./my_plugins\", \"/absolute\"]\n");
  CHECK(config.plugin_paths == std::vector<std::string>{folder.path() + "/my_plugins", "/absolute"});
  CHECK(config.environment_plugin_paths == std::vector<std::string>{"/one", "/two"});
}

TEST_CASE("a wrong word is named with file, line and what would be right") {
  CHECK(error_of("[compile]\nbackend = [\"good\"]\n") ==
        "tenon.toml:2: unknown key 'backend' in [compile]; did you mean 'backends'? known: backends, fallback, artefact_limit, warm_up");
  CHECK(error_of("\n[compil]\nx = 1\n").rfind("tenon.toml:2: unknown section 'compil'; did you mean 'compile'?", 0) == 0);
  CHECK(error_of("backends = []\n") == "tenon.toml:1: 'backends' belongs into the section [compile]");
  CHECK(error_of("[compile]\nbackends = [\"godo\"]\n").rfind("tenon.toml:2: unknown backend 'godo'; did you mean 'good'?", 0) == 0);
  CHECK(error_of("[compile]\nfallback = \"goood\"\n").rfind("tenon.toml:2: unknown backend 'goood'; did you mean 'good'?", 0) == 0);
  CHECK(error_of("[passes]\npipeline = [\"nowhere_known\"]\n").rfind("tenon.toml:2: unknown pass 'nowhere_known'", 0) == 0);
  CHECK(error_of("[good]\nfast_path = true\n") == "tenon.toml:2: unknown key in [good] 'fast_path'; did you mean 'fast_paths'? known: fast_paths");
  CHECK(error_of("[good]\nfast_paths = true\n") == "none");
  CHECK(error_of("[diagnostics]\nlogs = [\"pases\"]\n").rfind("tenon.toml:2: unknown log 'pases'; did you mean 'passes'?", 0) == 0);
}

TEST_CASE("a wrong type is named with file and line") {
  CHECK(error_of("[runtime]\nthreads = \"two\"\n") == "tenon.toml:2: runtime.threads must be an integer, not text: \"two\"");
  CHECK(error_of("[runtime]\nthreads = -1\n") == "tenon.toml:2: runtime.threads must not be negative: -1");
  CHECK(error_of("[compile]\nbackends = \"good\"\n") == "tenon.toml:2: compile.backends must be a list of text, not text: \"good\"");
  CHECK(error_of("[compile]\nbackends = [1]\n").rfind("tenon.toml:2: compile.backends must be a list of text", 0) == 0);
  CHECK(error_of("[passes]\nverify = 1\n") == "tenon.toml:2: passes.verify must be a boolean, not an integer: 1");
  CHECK(error_of("[compile\n").rfind("tenon.toml:1: ", 0) == 0);
  CHECK(error_of("[good]\nfast_paths = \"yes\"\n") == "tenon.toml:2: good.fast_paths must be true or false, not: \"yes\"");
  CHECK(error_of("[good]\nfast_paths = 1\n") == "tenon.toml:2: good.fast_paths must be true or false, not: 1");
  CHECK(error_of("[diagnostics]\nprogress = \"alway\"\n").rfind("tenon.toml:2: unknown word for diagnostics.progress 'alway'; did you mean 'always'?", 0) == 0);
}

TEST_CASE("options of a plugin are of the types that its manifest declares") {
  const std::pair<const char*, std::pair<const char*, const char*>> types[] = {
      {"boolean", {"true", "1"}}, {"integer", {"3", "3.5"}}, {"number", {"3", "\"3\""}}, {"text", {"\"x\"", "[]"}}, {"list", {"[1]", "\"x\""}}, {"object", {"{a = 1}", "2"}}};
  for (const auto& [type, values] : types) {
    INFO(type);
    const PluginFolder folder;
    folder.add("good", {{"options", {{"level", {{"type", type}}}}}});
    const auto error_with = [&](const char* value) -> std::string {
      try {
        Config config = load(folder, std::string("[good]\nlevel = ") + value + "\n");
        config.plugin_paths = {folder.path()};
        Events events;
        Registry(config, events).check(config);
        return {};
      } catch (const Exception& error) {
        return error.what();
      }
    };
    CHECK(error_with(values.first).empty());
    CHECK_THAT(error_with(values.second), Catch::Contains("good.level must be"));
  }
}

TEST_CASE("a variable that looks like a misspelt one is named with the right one") {
  const auto found = [] { return Config::misspelt_variables(); };
  CHECK(found().empty());
  const std::pair<const char*, const char*> misspelt[] = {{"TENON_BACKEND", "TENON_BACKENDS"},       {"TENON_LOG", "TENON_LOGS"},       {"TENON_PLUGINS_PATH", "TENON_PLUGIN_PATH"},
                                                          {"TENON_CACHE_DIRECTORY", "TENON_CACHE_DIR"}, {"TENON_THREAD", "TENON_THREADS"}, {"TENON_PLUGINS_ISOLATE", "TENON_PLUGIN_ISOLATE"}};
  for (const auto& [given, right] : misspelt) {
    const Variable variable(given, "x");
    INFO(given);
    REQUIRE(found().size() == 1);
    CHECK_THAT(found()[0], Catch::Contains(given) && Catch::Contains("did you mean '" + std::string(right) + "'"));
  }
  const Variable other("TENON_WHOLLY_DIFFERENT", "x");
  CHECK(found().empty());
}

TEST_CASE("wrong arguments are named") {
  CHECK(error_of("", {"threads=1"}) == "argument: a setting is written section.key=value, not: threads=1");
  CHECK(error_of("", {"runtime.thread=1"}).rfind("argument: unknown key 'thread' in [runtime]; did you mean 'threads'?", 0) == 0);
  CHECK(error_of("", {"runtime.threads=many"}) == "argument: runtime.threads must be an integer, not text: \"many\"");
  CHECK(error_of("", {"runtime.threads=99999999999"}) == "argument: runtime.threads must be at most 2147483647: \"99999999999\"");
  for (const char* number : {"nan", "inf", "-0.5"})
    CHECK(error_of("", {("plugins.probe_seconds=" + std::string(number)).c_str()}) == "argument: plugins.probe_seconds must be finite and not negative: \"" + std::string(number) + "\"");
  CHECK(error_of("", {"good.fast_path=1"}).rfind("argument: unknown key in [good] 'fast_path'", 0) == 0);
}

TEST_CASE("a file that was named must be there") {
  const TenonSessionOptions options{sizeof options, "/nowhere/tenon.toml", nullptr, 0};
  CHECK_THROWS_AS(Config::load(&options), Exception);
}

TEST_CASE("a plugin gets its section as JSON") {
  const PluginFolder folder;
  const Config config = load(folder, "[good]\nfast_paths = true\nlevel = 2\nname = \"x\"\n", {"good.level=3", "good.other=word"});
  CHECK(nlohmann::json::parse(config.plugin_options("good")) == nlohmann::json{{"fast_paths", true}, {"level", 3}, {"name", "x"}, {"other", "word"}});
  CHECK(config.plugin_options("another") == "{}");
}

TEST_CASE("every flag is whole, and its variable works") {
  for (const Flag& flag : all_flags()) {
    INFO(flag.key);
    CHECK(std::string(flag.environment).rfind("TENON_", 0) == 0);
    CHECK(std::string(flag.meaning).size() > 10);
    if (flag.section().empty()) continue;
    const std::string type = flag.type();
    const Variable variable(flag.environment, type == "boolean" ? "true" : type == "list" || type == "text" ? "all" : "7");
    const PluginFolder folder;
    const Config config = load(folder, "");
    const nlohmann::json value = config.to_json()[flag.section()][flag.name()];
    if (std::string(flag.key) == "plugins.paths") {
      CHECK(config.environment_plugin_paths == std::vector<std::string>{"all"});
    } else if (type == "list") {
      CHECK(value == nlohmann::json{"all"});
    } else if (type == "boolean") {
      CHECK(value == true);
    } else {
      CHECK(value == (type == "text" ? nlohmann::json("all") : nlohmann::json(7)));
    }
  }
}
