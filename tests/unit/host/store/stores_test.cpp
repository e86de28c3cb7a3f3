// What is kept on disk: probe verdicts and compiled code.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>

#include "catch.h"
#include "host/plugins/registry/registry.h"
#include "host/store/byte_store.h"
#include "host/store/content_hash.h"
#include "host/store/private_folder.h"
#include "unit/host/plugins/plugin_folder.h"

using namespace tenon::host;
using tenon::test::PluginFolder;

namespace {

using StoreOutcome = ByteStore::Outcome;

std::string ignored;

std::string found(const ByteStore& store, std::string_view key) {
  std::string value;
  CHECK(store.find(key, value) == StoreOutcome::found);
  return value;
}

void change_entries(const PluginFolder& folder, const std::function<std::string(std::string)>& change) {
  for (const auto& file : std::filesystem::directory_iterator(folder.path() + "/store")) {
    if (file.path().extension() != ".bin") continue;
    const std::string path = "store/" + file.path().filename().string();
    folder.write(path, change(folder.read(path)));
  }
}

nlohmann::json load(const Config& config, const char* name, nlohmann::json* counts = nullptr) {
  Events events;
  Registry registry(config, events);
  const nlohmann::json plugin = registry.describe_one(name)["plugins"][0];
  if (counts) *counts = events.counts();
  return plugin;
}

}  // namespace

TEST_CASE("SHA-256 agrees with the standard's examples") {
  CHECK(hash_of("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(hash_of("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(hash_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") == "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  ContentHash million;
  for (int i = 0; i < 1000; ++i) million.add(std::string(1000, 'a'));
  CHECK(million.finish() == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("the store gives back what was put, or nothing") {
  const PluginFolder folder;
  ByteStore store(folder.path() + "/store", 1 << 20);
  const std::string value("code\0bytes", 10);
  CHECK(store.put("key", value));
  CHECK(found(store, "key") == value);
  CHECK(store.find("another", ignored) == StoreOutcome::absent);
  CHECK(found(ByteStore(folder.path() + "/store", 1 << 20), "key") == value);
  CHECK(store.size().entries == 1);
}

TEST_CASE("a damaged entry is removed, and can be written again") {
  const PluginFolder folder;
  ByteStore store(folder.path() + "/store", 1 << 20);
  const auto damage = GENERATE(as<std::function<std::string(std::string)>>(),
      [](std::string bytes) { bytes.back() = static_cast<char>(bytes.back() ^ 1); return bytes; },
      [](std::string bytes) { return bytes.substr(0, bytes.size() - 1); },
      [](std::string bytes) { return bytes.substr(0, 40); },
      [](std::string) { return std::string(); },
      [](std::string bytes) { return bytes + "more"; });
  CHECK(store.put("key", "value"));
  change_entries(folder, damage);
  CHECK(store.find("key", ignored) == StoreOutcome::damaged);
  CHECK(store.find("key", ignored) == StoreOutcome::absent);
  CHECK(store.put("key", "value"));
  CHECK(found(store, "key") == "value");
}

TEST_CASE("an entry in another format is not found, and is replaced") {
  const PluginFolder folder;
  ByteStore store(folder.path() + "/store", 1 << 20);
  CHECK(store.put("key", "value"));
  change_entries(folder, [](std::string bytes) { bytes[7] = '9'; return bytes; });
  CHECK(store.find("key", ignored) == StoreOutcome::absent);
  CHECK(store.put("key", "new value"));
  CHECK(found(store, "key") == "new value");
}

TEST_CASE("an entry under another's name is not taken for it") {
  const PluginFolder folder;
  ByteStore store(folder.path() + "/store", 1 << 20);
  CHECK(store.put("key", "value"));
  std::filesystem::rename(folder.path() + "/store/" + hash_of("key") + ".bin", folder.path() + "/store/" + hash_of("other") + ".bin");
  CHECK(store.find("other", ignored) == StoreOutcome::damaged);
}

TEST_CASE("clearing the store removes its entries") {
  const PluginFolder folder;
  ByteStore store(folder.path() + "/store", 1 << 20);
  for (int i = 0; i < 5; ++i) store.put(std::to_string(i), "value");
  CHECK(store.size().entries == 5);
  CHECK(store.clear().entries == 5);
  CHECK(store.size().bytes == 0);
  CHECK(store.find("3", ignored) == StoreOutcome::absent);
  CHECK(store.put("3", "value"));
}

TEST_CASE("what a process left half written is removed an hour later") {
  const PluginFolder folder;
  ByteStore store(folder.path() + "/store", 1 << 20);
  folder.write("store/abc.bin.1.2.new", "half");
  CHECK(store.size().entries == 0);
  CHECK(std::filesystem::exists(folder.path() + "/store/abc.bin.1.2.new"));
  std::filesystem::last_write_time(folder.path() + "/store/abc.bin.1.2.new", std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
  CHECK(store.size().entries == 0);
  CHECK_FALSE(std::filesystem::exists(folder.path() + "/store/abc.bin.1.2.new"));
}

TEST_CASE("processes that write the same entries at once read whole ones") {
  const PluginFolder folder;
  const auto value = [](int key) { return std::string(static_cast<std::size_t>(1000 * key), static_cast<char>('a' + key)); };
  const auto work = [&] {
    ByteStore store(folder.path() + "/store", 60000);  // less than all of them: both trim
    std::string read;
    for (int round = 0; round < 300; ++round) {
      const int key = round % 17;
      store.put(std::to_string(key), value(key));
      const StoreOutcome outcome = store.find(std::to_string(round * 5 % 17), read);
      if (outcome == StoreOutcome::damaged || (outcome == StoreOutcome::found && read != value(round * 5 % 17))) return 1;
    }
    return 0;
  };
  std::vector<pid_t> children;
  for (int i = 0; i < 2; ++i) {
    children.push_back(fork());
    if (children.back() == 0) _exit(work());
  }
  for (const pid_t child : children) {
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
}

TEST_CASE("the store keeps to its limit") {
  const PluginFolder folder;
  ByteStore store(folder.path() + "/store", 20000);
  for (int i = 0; i < 100; ++i) CHECK(store.put(std::to_string(i), std::string(1000, 'x')));
  CHECK_FALSE(store.put("large", std::string(30000, 'x')));
  std::uintmax_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder.path() + "/store")) bytes += file.file_size();
  CHECK(bytes <= 20000);
  CHECK(found(store, "99") == std::string(1000, 'x'));
  CHECK(store.find("0", ignored) == StoreOutcome::absent);
}

TEST_CASE("the folder is measured when a sixteenth of it may be new, whoever wrote that") {
  const PluginFolder folder;
  const auto put = [&](const std::string& key) {
    ByteStore store(folder.path() + "/store", 1 << 20);
    CHECK(store.put(key, std::string(1000, 'x')));
  };
  put("first");
  folder.write("store/foreign.bin", std::string(2 << 20, 'x'));  // what a measurement finds to be too much
  const auto kept = [&] { return std::filesystem::exists(folder.path() + "/store/foreign.bin"); };
  put("second");
  CHECK(kept());
  for (int i = 0; i < 70; ++i) put(std::to_string(i));
  CHECK_FALSE(kept());
}

TEST_CASE("what was not used for longest goes first") {
  const PluginFolder folder;
  ByteStore store(folder.path() + "/store", 20000);
  for (int i = 0; i < 10; ++i) CHECK(store.put(std::to_string(i), std::string(1000, 'x')));
  for (const auto& file : std::filesystem::directory_iterator(folder.path() + "/store"))
    std::filesystem::last_write_time(file.path(), std::filesystem::file_time_type::clock::now() - std::chrono::hours(48));
  std::filesystem::last_write_time(folder.path() + "/store/" + hash_of("1") + ".bin", std::filesystem::file_time_type::clock::now() - std::chrono::hours(72));
  CHECK(found(store, "0").size() == 1000);
  for (int i = 10; i < 24; ++i) CHECK(store.put(std::to_string(i), std::string(1000, 'x')));
  CHECK(found(store, "0").size() == 1000);
  CHECK(store.find("1", ignored) == StoreOutcome::absent);
}

TEST_CASE("a folder that others may write is not used") {
  const PluginFolder folder;
  std::filesystem::create_directory(folder.path() + "/store");
  ::chmod((folder.path() + "/store").c_str(), 0777);
  ByteStore store(folder.path() + "/store", 1 << 20);
  CHECK_FALSE(store.put("key", "value"));
  CHECK(store.find("key", ignored) == StoreOutcome::absent);
  CHECK(store.folder().problem() == "is writable by everybody (chmod o-w)");
  Config config = folder.config();
  config.cache = true;
  config.cache_directory = folder.path();
  Events events;
  const Registry registry(config, events);
  CHECK(events.counts()["cache_refused"] == 1);
  CHECK(registry.describe_cache()["usable"] == false);
}

TEST_CASE("a verdict is remembered by the library's content") {
  const PluginFolder folder, cache;
  folder.add("good");
  folder.add("abort_loading");
  Config config = folder.config();
  config.cache = true;
  config.cache_directory = cache.path();
  nlohmann::json counts;
  CHECK(load(config, "good", &counts)["state"] == "loaded");
  CHECK(counts["plugin_probed"] == 1);
  CHECK(load(config, "good", &counts)["state"] == "loaded");
  CHECK_FALSE(counts.contains("plugin_probed"));
  CHECK(load(config, "abort_loading", &counts)["reason"] == "aborted");
  CHECK(counts["plugin_probed"] == 1);
  CHECK(load(config, "abort_loading", &counts)["reason"] == "aborted");
  CHECK_FALSE(counts.contains("plugin_probed"));
  // Other options are another question.
  config.sections["good"].entries["fast"] = {"true", {}};
  CHECK(load(config, "good", &counts)["state"] == "loaded");
  CHECK(counts["plugin_probed"] == 1);
  config.sections.clear();
  // With the rest of the cache they are forgotten.
  {
    Events events;
    CHECK(Registry(config, events).clear_cache() == 3);
  }
  CHECK(load(config, "good", &counts)["state"] == "loaded");
  CHECK(counts["plugin_probed"] == 1);
  // Another content under the same name is another question.
  folder.add_library("good", "abort_loading.so");
  CHECK(load(config, "abort_loading", &counts)["reason"] == "name_mismatch");
  CHECK(counts["plugin_probed"] == 1);
}
