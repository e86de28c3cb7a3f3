// A process that runs with more rights than its user has must not let that user's environment and folders choose code.
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "catch.h"
#include "host/config/config_file.h"
#include "host/config/flags.h"
#include "host/store/private_folder.h"
#include "unit/host/plugins/plugin_folder.h"

using namespace tenon::host;

/// The leak sanitizer reads its own process through ptrace, which the kernel forbids to a privileged one.
extern "C" [[gnu::visibility("default")]] int __lsan_is_turned_off() { return getauxval(AT_SECURE) != 0; }

TEST_CASE("inside a privileged process", "[.privileged]") {
  REQUIRE(getauxval(AT_SECURE) != 0);
  REQUIRE(getenv("TENON_PLUGIN_PATH") != nullptr);
  CHECK_FALSE(environment("TENON_PLUGIN_PATH"));
  CHECK_FALSE(environment("HOME"));
  CHECK(configuration_candidates().empty());
  CHECK(cache_folder("/somewhere").empty());
  const Config config = Config::load(nullptr);
  CHECK(config.threads == 0);
  CHECK(config.environment_plugin_paths.empty());
}

TEST_CASE("a privileged process ignores the environment and the user's folders") {
  if (geteuid() != 0) return;  // only root can make a program of another user's
  const tenon::test::PluginFolder folder;
  const std::string program = folder.path() + "/program";
  std::filesystem::copy_file("/proc/self/exe", program);
  ::chmod(folder.path().c_str(), 0755);
  constexpr uid_t nobody = 65534;
  REQUIRE(::chown(program.c_str(), nobody, nobody) == 0);
  REQUIRE(::chmod(program.c_str(), 04755) == 0);
  const std::string command = "TENON_PLUGIN_PATH=/tmp TENON_THREADS=3 HOME=/tmp '" + program + "' '[.privileged]' > /dev/null";
  CHECK(std::system(command.c_str()) == 0);
}
