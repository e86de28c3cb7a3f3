#include "host/plugins/find/manifest.h"

#include "catch.h"
#include "host/plugins/find/refusal.h"
#include "unit/host/plugins/plugin_folder.h"

using namespace tenon;
using namespace tenon::host;

namespace {

std::string reason_of(std::string_view text) {
  try {
    parse_manifest(text);
  } catch (const Refused& refused) {
    return refused.refusal().reason;
  }
  return "none";
}

}  // namespace

TEST_CASE("a manifest says what there is to know without loading") {
  const Manifest manifest = parse_manifest(R"({"manifest": 1, "name": "algebra", "kind": "passes", "version": "1.2", "description": "d",
    "passes": ["simplify", "fold"], "options": {"depth": {"type": "integer", "default": 3, "meaning": "m"}}, "abi": {"oldest": 1, "newest": 1}})");
  CHECK(manifest.name == "algebra");
  CHECK(manifest.kind == TENON_KIND_PASSES);
  CHECK(manifest.library == "algebra.so");
  CHECK(manifest.passes == std::vector<std::string>{"simplify", "fold"});
  CHECK(manifest.options->at("depth") == "integer");
  CHECK(manifest.abi_newest == 1);
}

TEST_CASE("manifests that are wrong are refused") {
  CHECK(reason_of("") == "manifest_malformed");
  CHECK(reason_of("{\"manifest\": 1,") == "manifest_malformed");
  CHECK(reason_of("[]") == "manifest_invalid");
  CHECK(reason_of(R"({"name": "a", "kind": "backend"})") == "manifest_invalid");
  CHECK(reason_of(R"({"manifest": 2, "name": "a", "kind": "backend"})") == "manifest_invalid");
  CHECK(reason_of(R"({"manifest": 1, "kind": "backend"})") == "manifest_invalid");
  CHECK(reason_of(R"({"manifest": 1, "name": "A b", "kind": "backend"})") == "manifest_invalid");
  CHECK(reason_of(R"({"manifest": 1, "name": "a", "kind": "engine"})") == "manifest_invalid");
  CHECK(reason_of(R"({"manifest": 1, "name": 5, "kind": "backend"})") == "manifest_invalid");
  CHECK(reason_of(R"({"manifest": 1, "name": "a", "kind": "passes", "passes": "b"})") == "manifest_invalid");
  CHECK(reason_of(R"({"manifest": 1, "name": "a", "kind": "backend", "abi": 1})") == "manifest_invalid");
  CHECK(reason_of(R"({"manifest": 1, "name": "a", "kind": "backend", "library": "../a.so"})") == "path_escapes");
  CHECK(reason_of(R"({"manifest": 1, "name": "a", "kind": "backend", "library": "/tmp/a.so"})") == "path_escapes");
  CHECK(reason_of(R"({"manifest": 1, "name": "a", "kind": "backend", "library": ".."})") == "path_escapes");
}

TEST_CASE("a manifest has limits of size and depth") {
  CHECK(reason_of(std::string(kMaxManifestBytes + 1, ' ')) == "manifest_too_large");
  CHECK(reason_of(std::string(30000, '[') + std::string(30000, ']')) == "manifest_malformed");
  CHECK(reason_of(std::string(60000, '[')) == "manifest_malformed");
  const tenon::test::PluginFolder folder;
  folder.add_library("good");
  folder.write("good.json", std::string(10 << 20, '{'));
  const nlohmann::json verdict = tenon::test::verdict_on(folder.config(), "good");
  CHECK(verdict["reason"] == "manifest_too_large");
  CHECK(verdict["text"].get<std::string>().find("10485760") != std::string::npos);
}

TEST_CASE("a version range without overlap is refused before loading") {
  const tenon::test::PluginFolder folder;
  folder.add("abort_loading", {{"abi", {{"oldest", 7}, {"newest", 9}}}});
  const nlohmann::json verdict = tenon::test::verdict_on(folder.config(), "abort_loading");
  CHECK(verdict["reason"] == "abi_too_new");
  CHECK(verdict["text"] == "needs ABI 7 to 9; this host offers 1 to 1: a newer Tenon is needed");
}
