// Bytes by key on disk: what plugins keep between processes (compiled code).
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "host/plugins/private_folder.h"

namespace tenon::host {

/// Thread-safe, and safe between processes. An entry is returned whole and unchanged or not at all: it carries key and hash.
class ByteStore {
 public:
  /// Keeps at most `limit` bytes, the most recently written. An empty folder name gives a store that keeps nothing.
  ByteStore(const std::string& folder, std::uint64_t limit) : folder_(folder), limit_(limit) {}

  std::optional<std::string> get(std::string_view key) const;
  /// False when the entry is not kept: too large, no folder, disk full.
  bool put(std::string_view key, std::string_view value);

 private:
  void trim();

  PrivateFolder folder_;
  std::uint64_t limit_;
  std::mutex mutex_;
  std::uint64_t written_ = 0;  // since the last trim
  bool measured_ = false;
};

}  // namespace tenon::host
