#include "host/plugins/contact/library.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include "catch.h"
#include "host/plugins/find/refusal.h"
#include "host/plugins/registry/registry.h"
#include "unit/host/plugins/plugin_folder.h"

using namespace tenon;
using namespace tenon::host;
using tenon::test::PluginFolder;

namespace {

const TenonPlugin* load(const PluginFolder& folder, const std::string& name) {
  const Descriptor directory = open_directory(folder.path(), Trust::checked);
  Manifest manifest;
  manifest.name = name;
  manifest.library = name + ".so";
  return load_library(open_file_in(directory, manifest.library, Trust::checked), manifest);
}

}  // namespace

TEST_CASE("each library keeps its descriptor, so that a reused number never gives the old one") {
  const PluginFolder first, second;
  first.add("good");
  second.add("good");
  const TenonPlugin* a = load(first, "good");
  const TenonPlugin* b = load(second, "good");
  CHECK(a != b);
  CHECK(load(first, "good") == a);
  CHECK(load(second, "good") == b);
}

TEST_CASE("a failed load closes its descriptor") {
  const PluginFolder folder;
  folder.add("undefined_symbol");
  const int before = ::open("/dev/null", O_RDONLY);
  ::close(before);
  for (int i = 0; i < 5; ++i) CHECK_THROWS_AS(load(folder, "undefined_symbol"), Refused);
  const int after = ::open("/dev/null", O_RDONLY);
  ::close(after);
  CHECK(before == after);
}

TEST_CASE("symbols of a plugin are nobody else's") {
  const PluginFolder folder;
  folder.add("good");
  load(folder, "good");
  CHECK(::dlsym(RTLD_DEFAULT, TENON_PLUGIN_ENTRY) == nullptr);
}

TEST_CASE("a dependency beside the plugin needs another route than $ORIGIN") {
  // Opened through a descriptor, the library's own place is /proc/self/fd: an RPATH with $ORIGIN finds nothing.
  const PluginFolder folder;
  folder.add("needs_neighbour");
  folder.add_library("neighbour");
  const nlohmann::json verdict = tenon::test::verdict_on(folder.config(), "needs_neighbour");
  CHECK(verdict["reason"] == "unresolved");
  CHECK(verdict["text"].get<std::string>().find("neighbour.so") != std::string::npos);
}

TEST_CASE("two sessions share a library, each with a table of its own") {
  const PluginFolder folder;
  folder.add("good");
  Events events;
  Registry first(folder.config(), events), second(folder.config(), events);
  REQUIRE(first.backend("good"));
  REQUIRE(second.backend("good"));
  CHECK(first.backend("good")->descriptor == second.backend("good")->descriptor);
  CHECK(first.backend("good")->table != second.backend("good")->table);
}

TEST_CASE("a plugin of this process is added, unless its name is taken or it is ill-formed") {
  const PluginFolder folder;
  folder.add("good");
  Events events;
  Registry registry(folder.config(), events);
  const TenonPlugin* good = load(folder, "good");
  CHECK_THROWS_WITH(registry.add(good), Catch::Contains("is taken"));
  TenonPlugin mine = *good;
  mine.name = "mine";
  const Plugin& added = registry.add(&mine);
  CHECK(registry.backend("mine") == &added);
  CHECK(added.path.empty());
  CHECK_THROWS_WITH(registry.add(&mine), Catch::Contains("is taken"));
  TenonPlugin ill = *good;
  ill.name = "ill";
  ill.magic = 1;
  CHECK_THROWS_WITH(registry.add(&ill), Catch::Contains("magic"));
}
