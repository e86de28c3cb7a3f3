#include "host/plugins/verdict_store.h"

#include <fcntl.h>

#include <ctime>
#include <nlohmann/json.hpp>

#include "host/plugins/content_hash.h"

namespace tenon::host {
namespace {

using nlohmann::json;

constexpr std::int64_t kRefusalSeconds = 600;

}  // namespace

VerdictStore::VerdictStore(const std::string& folder, const std::string& probe_program) : folder_(folder.empty() ? "" : folder + "/probe") {
  const Descriptor probe(::open(probe_program.c_str(), O_RDONLY | O_CLOEXEC));
  host_identity_ = fmt::format("{} {} {}", TENON_VERSION, TENON_ABI_NEWEST, probe ? identity_of(probe.get()).text() : "");
}

std::string VerdictStore::content_hash(int fd) {
  const std::string memo = identity_of(fd).text() + ".hash";
  if (std::optional<std::string> known = folder_.read(memo); known && known->size() == 64) return *known;
  const std::string hash = hash_of_file(fd);
  folder_.write(memo, hash);
  return hash;
}

std::string VerdictStore::file_name(const std::string& content_hash, const Manifest& manifest) const {
  // What the manifest promises is checked against the library, so it is part of the question.
  std::string question = host_identity_ + '\0' + content_hash + '\0' + manifest.name + '\0' + (manifest.kind ? kind_name(*manifest.kind) : "");
  for (const std::string& pass : manifest.passes) question += '\0' + pass;
  return hash_of(question) + ".json";
}

std::optional<StoredVerdict> VerdictStore::find(const std::string& content_hash, const Manifest& manifest) const {
  const std::optional<std::string> text = folder_.read(file_name(content_hash, manifest));
  if (!text) return std::nullopt;
  const json document = json::parse(*text, nullptr, false);
  if (!document.is_object()) return std::nullopt;
  StoredVerdict verdict;
  if (document.value("usable", false)) {
    verdict.usable = ProbeVerdict{static_cast<TenonKind>(document.value("kind", 0)), document.value("passes", std::vector<std::string>())};
    return verdict;
  }
  const std::int64_t age = std::time(nullptr) - document.value("time", std::int64_t{0});
  if (age < 0 || age > kRefusalSeconds) return std::nullopt;
  verdict.refusal = {document.value("reason", ""), document.value("text", "")};
  return verdict;
}

void VerdictStore::store(const std::string& content_hash, const Manifest& manifest, const StoredVerdict& verdict) const {
  json document = {{"usable", verdict.usable.has_value()}, {"time", static_cast<std::int64_t>(std::time(nullptr))}};
  if (verdict.usable) {
    document["kind"] = static_cast<int>(verdict.usable->kind);
    document["passes"] = verdict.usable->passes;
  } else {
    document["reason"] = verdict.refusal.reason;
    document["text"] = verdict.refusal.text;
  }
  folder_.write(file_name(content_hash, manifest), document.dump(-1, ' ', false, json::error_handler_t::replace));
}

}  // namespace tenon::host
