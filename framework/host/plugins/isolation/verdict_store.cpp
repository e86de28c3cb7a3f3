#include "host/plugins/isolation/verdict_store.h"

#include <fcntl.h>

#include <ctime>
#include <nlohmann/json.hpp>

#include "host/store/content_hash.h"

namespace tenon::host {
namespace {

using nlohmann::json;

constexpr std::int64_t kRefusalSeconds = 600;

constexpr std::string_view kVerdictEnding = ".json";
constexpr std::string_view kHashEnding = ".hash";
constexpr std::size_t kMostBytes = 256 << 10;  // a verdict is a sentence

/// Bytes that show whether they are what was written: their hash, a space, the bytes.
std::string sealed(const std::string& content) { return hash_of(content) + " " + content; }

std::optional<std::string> sealed_content(const std::optional<std::string>& bytes) {
  constexpr std::size_t kHead = 65;
  if (!bytes || bytes->size() < kHead) return std::nullopt;
  std::string content = bytes->substr(kHead);
  if (sealed(content) != *bytes) return std::nullopt;
  return content;
}

/// Throws json::exception for a document of another form.
std::optional<StoredVerdict> verdict_in(const json& document) {
  StoredVerdict verdict;
  if (document.at("usable").get<bool>()) {
    verdict.usable = ProbeVerdict{static_cast<TenonKind>(document.at("kind").get<int>()), document.at("passes").get<std::vector<std::string>>()};
    return verdict;
  }
  const std::int64_t age = std::time(nullptr) - document.at("time").get<std::int64_t>();
  if (age < 0 || age > kRefusalSeconds) return std::nullopt;
  verdict.refusal = {document.at("reason").get<std::string>(), document.at("text").get<std::string>()};
  return verdict;
}

}  // namespace

VerdictStore::VerdictStore(const std::string& folder, const std::string& probe_program) : folder_(folder.empty() ? "" : folder + "/probe") {
  const Descriptor probe(::open(probe_program.c_str(), O_RDONLY | O_CLOEXEC));
  host_identity_ = fmt::format("{} {} {}", TENON_VERSION, TENON_ABI_NEWEST, probe ? identity_of(probe.get()).text() : "");
}

std::string VerdictStore::content_hash(int fd) {
  const std::string memo = identity_of(fd).text() + std::string(kHashEnding);
  if (std::optional<std::string> known = sealed_content(folder_.read(memo, kMostBytes))) return *known;
  const std::string hash = hash_of_file(fd);
  folder_.write(memo, sealed(hash));
  return hash;
}

std::string VerdictStore::file_name(const std::string& content_hash, const Manifest& manifest, const std::string& options) const {
  std::string question = content_hash + '\0' + host_identity_ + '\0' + manifest.name + '\0' + (manifest.kind ? kind_name(*manifest.kind) : "") + '\0' + options;
  for (const std::string& pass : manifest.passes) question += '\0' + pass;
  return hash_of(question).append(kVerdictEnding);
}

std::optional<StoredVerdict> VerdictStore::find(const std::string& content_hash, const Manifest& manifest, const std::string& options) const {
  const std::optional<std::string> text = sealed_content(folder_.read(file_name(content_hash, manifest, options), kMostBytes));
  if (!text) return std::nullopt;
  try {
    return verdict_in(json::parse(*text));
  } catch (const json::exception&) {  // of another version of Tenon
    return std::nullopt;
  }
}

void VerdictStore::store(const std::string& content_hash, const Manifest& manifest, const std::string& options, const StoredVerdict& verdict) const {
  json document = {{"usable", verdict.usable.has_value()}, {"time", static_cast<std::int64_t>(std::time(nullptr))}};
  if (verdict.usable) {
    document["kind"] = static_cast<int>(verdict.usable->kind);
    document["passes"] = verdict.usable->passes;
  } else {
    document["reason"] = verdict.refusal.reason;
    document["text"] = verdict.refusal.text;
  }
  folder_.write(file_name(content_hash, manifest, options), sealed(document.dump(-1, ' ', false, json::error_handler_t::replace)));
}

std::uint64_t VerdictStore::clear() const {
  std::uint64_t removed = 0;
  for (const PrivateFolder::File& file : folder_.files(kVerdictEnding)) removed += folder_.remove(file.name);
  for (const PrivateFolder::File& file : folder_.files(kHashEnding)) folder_.remove(file.name);
  return removed;
}

}  // namespace tenon::host
