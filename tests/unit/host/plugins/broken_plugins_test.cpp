// A broken plugin is refused with its own reason, and a good one beside it still works. Every fault in every phase: tests/plugins/faults.
#include "catch.h"
#include "host/plugins/registry/registry.h"
#include "plugin_folder.h"

using namespace tenon;
using namespace tenon::host;
using tenon::test::PluginFolder;

namespace {

struct Case {
  const char* plugin;
  const char* reason;
  const char* text;  // a part of the sentence
};

void check_refused(const Config& config, const Case& expected) {
  const nlohmann::json verdict = tenon::test::verdict_on(config, expected.plugin);
  INFO(verdict.dump(2));
  CHECK(verdict["state"] == "refused");
  CHECK(verdict.value("reason", "") == expected.reason);
  CHECK(verdict.value("text", "").find(expected.text) != std::string::npos);
}

}  // namespace

TEST_CASE("a plugin whose descriptor is wrong is refused with its own reason") {
  const Case expected = GENERATE(values<Case>({
      {"no_entry", "no_entry", "tenon_plugin_entry"},
      {"null_descriptor", "null_descriptor", "returned null"},
      {"refuses", "refused_by_plugin", "\"this plugin needs ABI 7 to 9\"; the host offers ABI 1 to 1"},
      {"bad_magic", "bad_magic", "0x1234"},
      {"abi_too_new", "abi_too_new", "a newer Tenon is needed"},
      {"abi_too_old", "abi_too_old", "build the plugin with a newer SDK"},
      {"size_too_small", "bad_size", "has 24 bytes"},
      {"size_huge", "bad_size", "18446744073709551615"},
      {"table_too_small", "bad_size", "backend table has 16 bytes"},
      {"null_function", "bad_table", "\"claim\""},
      {"no_table", "bad_table", "without a backend table"},
      {"wrong_name", "name_mismatch", "\"somebody_else\""},
      {"wrong_kind", "kind_mismatch", "frontend"},
      {"sanitized", "sanitizer", "memory"},
      {"undefined_symbol", "unresolved", "a_function_that_nobody_defines"},
      {"create_fails", "call_failed", "this machine lacks the device"},
  }));
  const PluginFolder folder;
  folder.add(expected.plugin);
  check_refused(folder.config(), expected);
}

TEST_CASE("a plugin that takes its process along is refused by the probe") {
  const Case expected = GENERATE(values<Case>({
      {"abort_loading", "aborted", "while loading"},
      {"exit_in_entry", "exited", "in its entry (exit status 0)"},
      {"segfault_claiming", "segfault", "while claiming sample graph 0"},
      {"forges_answer", "exited", "in its entry"},
      {"leaves_child", "exited", "in its entry"},
  }));
  const PluginFolder folder;
  folder.add(expected.plugin);
  check_refused(folder.config(), expected);
}

TEST_CASE("a file that is no complete library is refused before anything maps it") {
  const std::string good = tenon::test::library_bytes("good");
  const auto patched = [&](std::size_t at, char byte) {
    std::string bytes = good;
    bytes[at] = byte;
    return bytes;
  };
  struct FileCase {
    std::string bytes;
    const char* reason;
  };
  std::vector<FileCase> cases = {{"", "empty"},
                                 {"this is a text, not a library\n", "not_elf"},
                                 {"\x7f", "not_elf"},
                                 {patched(4, 1), "wrong_class"},
                                 {patched(5, 2), "wrong_class"},
                                 {patched(18, 40), "wrong_machine"},
                                 {patched(16, 2), "wrong_type"},
                                 {patched(54, 1), "not_elf"},
                                 {patched(33, 0x7f), "truncated"}};
  for (const std::size_t size : {std::size_t{4}, std::size_t{16}, std::size_t{63}, std::size_t{64}, std::size_t{200}, good.size() / 4, good.size() / 2,
                                 good.size() * 3 / 4, good.size() - 1})
    cases.push_back({good.substr(0, size), "truncated"});
  for (const FileCase& expected : cases) {
    const PluginFolder folder;
    folder.write("good.so", expected.bytes);
    folder.add_manifest("good");
    const nlohmann::json verdict = tenon::test::verdict_on(folder.config(), "good");
    INFO(expected.bytes.size() << " bytes: " << verdict.dump(2));
    CHECK(verdict.value("reason", "") == expected.reason);
  }
}

TEST_CASE("broken plugins leave the others working") {
  const PluginFolder folder;
  for (const char* name : {"abort_loading", "exit_in_entry", "segfault_claiming", "undefined_symbol", "bad_magic"}) folder.add(name);
  folder.write("junk.json", "{{{");
  folder.write("empty.so", "");
  folder.add("good");
  Events events;
  Registry registry(folder.config(), events);
  CHECK(registry.backend("abort_loading") == nullptr);
  CHECK(registry.backend("exit_in_entry") == nullptr);
  CHECK(registry.backend("empty") == nullptr);
  const Plugin* good = registry.backend("good");
  REQUIRE(good);
  CHECK(good->name == "good");
  CHECK(good->kind == TENON_KIND_BACKEND);
  CHECK(good->descriptor->backend->claim != nullptr);
  CHECK(registry.backend("good") == good);
  CHECK(registry.backend("segfault_claiming") == nullptr);
  CHECK(registry.why_no_backend("segfault_claiming").find("segfault") != std::string::npos);
}
