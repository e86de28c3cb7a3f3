#include "host/store/byte_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "core/base/error.h"
#include "host/store/content_hash.h"

namespace tenon::host {
namespace {

// An entry: magic with the version of this format, hash of the rest (64 hex digits), size of the key (8 bytes), key, value.
constexpr std::string_view kMagic = "TENONST1";
constexpr std::size_t kMagicName = 7;
constexpr std::size_t kHead = 8 + 64;
constexpr std::string_view kEnding = ".bin";

// What all processes have written since one of them last measured the folder: a byte for each block. To look at each entry takes seconds.
const std::string kTally = "written";
constexpr std::uint64_t kBlock = 512;

std::string file_name(std::string_view key) { return host::hash_of(key).append(kEnding); }

std::string size_bytes(std::uint64_t size) {
  std::string bytes(sizeof size, '\0');
  std::memcpy(bytes.data(), &size, sizeof size);
  return bytes;
}

/// What follows magic and hash, when it is what was written.
std::optional<std::string_view> content_of(std::string_view entry, std::string_view key) {
  if (entry.size() < kHead + 8 + key.size() || !entry.starts_with(kMagic)) return std::nullopt;
  const std::string_view rest = entry.substr(kHead);
  if (host::hash_of(rest) != entry.substr(8, 64)) return std::nullopt;
  if (rest.substr(0, 8) != size_bytes(key.size()) || rest.substr(8, key.size()) != key) return std::nullopt;
  return rest.substr(8 + key.size());
}

}  // namespace

ByteStore::Outcome ByteStore::find(std::string_view key, std::string& value) const {
  const std::string name = file_name(key);
  const std::optional<std::string> entry = folder_.read(name, limit_);
  if (!entry) return Outcome::absent;
  if (const auto content = content_of(*entry, key)) {
    value.assign(*content);
    folder_.touch(name);
    return Outcome::found;
  }
  if (entry->size() >= kMagic.size() && entry->starts_with(kMagic.substr(0, kMagicName)) && !entry->starts_with(kMagic)) return Outcome::absent;
  folder_.remove(name);
  return Outcome::damaged;
}

bool ByteStore::put(std::string_view key, std::string_view value) {
  if (!folder_.usable() || kHead + 8 + key.size() + value.size() > limit_) return false;
  const std::string rest = size_bytes(key.size()).append(key).append(value);
  if (!folder_.write(file_name(key), std::string(kMagic) + hash_of(rest) + rest)) return false;
  const std::lock_guard lock(mutex_);
  const std::uint64_t blocks = (kHead + rest.size()) / kBlock + 1, all_blocks = folder_.lengthen(kTally, blocks);
  // The folder is measured at the first write of all and then each time a sixteenth of it may be new.
  if (all_blocks <= blocks || all_blocks * kBlock > limit_ / 16) trim();
  return true;
}

ByteStore::Size ByteStore::size() const {
  Size size;
  for (const PrivateFolder::File& file : folder_.files(kEnding)) ++size.entries, size.bytes += file.size;
  return size;
}

ByteStore::Size ByteStore::clear() {
  Size removed;
  std::size_t left = 0;
  int why = 0;
  for (const PrivateFolder::File& file : folder_.files(kEnding)) {
    if (folder_.remove(file.name)) ++removed.entries, removed.bytes += file.size;
    else ++left, why = errno;
  }
  if (left) throw Exception(Code::unsupported, fmt::format("{} of {} entries could not be removed from {}: {}", left, left + removed.entries, folder_.path(), std::strerror(why)));
  return removed;
}

/// Leaves room for what is written until the next trim.
void ByteStore::trim() {
  folder_.write(kTally, "0");
  std::vector<PrivateFolder::File> files = folder_.files(kEnding);
  std::uint64_t total = 0;
  for (const auto& file : files) total += file.size;
  const std::uint64_t most = limit_ - limit_ / 16;
  if (total <= most) return;
  std::stable_sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.used < b.used; });
  for (const auto& file : files) {
    if (total <= most) break;
    folder_.remove(file.name);
    total -= file.size;
  }
}

}  // namespace tenon::host
