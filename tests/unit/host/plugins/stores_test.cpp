// What is kept on disk: probe verdicts and compiled code.
#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>

#include "catch.h"
#include "host/plugins/byte_store.h"
#include "host/plugins/content_hash.h"
#include "host/plugins/private_folder.h"
#include "host/plugins/registry.h"
#include "plugin_folder.h"

using namespace tenon::host;
using test::PluginFolder;

namespace {

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
  CHECK(store.get("key") == value);
  CHECK_FALSE(store.get("another"));
  CHECK(ByteStore(folder.path() + "/store", 1 << 20).get("key") == value);
  for (const auto& file : std::filesystem::directory_iterator(folder.path() + "/store")) {
    const std::string path = "store/" + file.path().filename().string();
    std::string bytes = folder.read(path);
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    folder.write(path, bytes);
  }
  CHECK_FALSE(store.get("key"));
}

TEST_CASE("the store keeps to its limit") {
  const PluginFolder folder;
  ByteStore store(folder.path() + "/store", 20000);
  for (int i = 0; i < 100; ++i) CHECK(store.put(std::to_string(i), std::string(1000, 'x')));
  CHECK_FALSE(store.put("large", std::string(30000, 'x')));
  std::uintmax_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder.path() + "/store")) bytes += file.file_size();
  CHECK(bytes < 25000);
  CHECK(store.get("99"));
  CHECK_FALSE(store.get("0"));
}

TEST_CASE("a folder that others may write is not used") {
  const PluginFolder folder;
  std::filesystem::create_directory(folder.path() + "/store");
  ::chmod((folder.path() + "/store").c_str(), 0777);
  ByteStore store(folder.path() + "/store", 1 << 20);
  CHECK_FALSE(store.put("key", "value"));
  CHECK_FALSE(store.get("key"));
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
  // Another content under the same name is another question.
  folder.add_library("good", "abort_loading.so");
  CHECK(load(config, "abort_loading", &counts)["reason"] == "name_mismatch");
  CHECK(counts["plugin_probed"] == 1);
}
