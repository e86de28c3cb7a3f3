#include "host/plugins/byte_store.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <vector>

#include "host/plugins/content_hash.h"

namespace tenon::host {
namespace {

// An entry: magic, hash of the rest (64 hex digits), size of the key (8 bytes), key, value.
constexpr std::string_view kMagic = "TENONST1";
constexpr std::size_t kHead = 8 + 64;

std::string file_name(std::string_view key) { return host::hash_of(key) + ".bin"; }

std::string size_bytes(std::uint64_t size) {
  std::string bytes(sizeof size, '\0');
  std::memcpy(bytes.data(), &size, sizeof size);
  return bytes;
}

}  // namespace

std::optional<std::string> ByteStore::get(std::string_view key) const {
  std::optional<std::string> entry = folder_.read(file_name(key));
  if (!entry || entry->size() < kHead + 8 + key.size() || entry->compare(0, 8, kMagic) != 0) return std::nullopt;
  const std::string_view rest = std::string_view(*entry).substr(kHead);
  if (hash_of(rest) != std::string_view(*entry).substr(8, 64)) return std::nullopt;
  if (rest.substr(0, 8) != size_bytes(key.size()) || rest.substr(8, key.size()) != key) return std::nullopt;
  return std::string(rest.substr(8 + key.size()));
}

bool ByteStore::put(std::string_view key, std::string_view value) {
  if (!folder_.usable() || key.size() + value.size() > limit_) return false;
  const std::string rest = size_bytes(key.size()).append(key).append(value);
  if (!folder_.write(file_name(key), std::string(kMagic) + hash_of(rest) + rest)) return false;
  const std::lock_guard lock(mutex_);
  written_ += kHead + rest.size();
  // The folder is measured at the first write of a process and then each time a sixteenth of it may be new.
  if (!measured_ || written_ > limit_ / 16) trim();
  return true;
}

void ByteStore::trim() {
  namespace fs = std::filesystem;
  struct Entry {
    fs::file_time_type time;
    fs::path path;
    std::uint64_t size;
  };
  measured_ = true;
  written_ = 0;
  std::vector<Entry> entries;
  std::uint64_t total = 0;
  std::error_code problem;
  for (const fs::directory_entry& file : fs::directory_iterator(folder_.path(), problem)) {
    if (file.path().extension() != ".bin") continue;
    entries.push_back({file.last_write_time(problem), file.path(), file.file_size(problem)});
    total += entries.back().size;
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.time < b.time; });
  for (const Entry& entry : entries) {
    if (total <= limit_) break;
    fs::remove(entry.path, problem);
    total -= entry.size;
  }
}

}  // namespace tenon::host
