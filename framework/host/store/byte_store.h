// Bytes by key on disk: what plugins keep between processes (compiled code).
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "host/store/private_folder.h"

namespace tenon::host {

/// Thread-safe, and safe between processes. An entry is returned whole and unchanged or not at all: it carries key and hash.
class ByteStore {
 public:
  /// Keeps at most `limit` bytes, the most recently used. An empty folder name gives a store that keeps nothing.
  ByteStore(const std::string& folder, std::uint64_t limit) : folder_(folder), limit_(limit) {}

  const PrivateFolder& folder() const { return folder_; }
  std::uint64_t limit() const { return limit_; }

  enum class Outcome {
    found,
    absent,   // also when the entry was written by a version of Tenon that writes another format
    damaged,  // the entry is removed
  };
  /// Sets `value` when it is found.
  Outcome find(std::string_view key, std::string& value) const;
  /// False when the entry is not kept: too large, no folder, disk full.
  bool put(std::string_view key, std::string_view value);

  struct Size {
    std::uint64_t entries = 0;
    std::uint64_t bytes = 0;
  };
  Size size() const;
  /// Removes all entries; gives what there was.
  Size clear();

 private:
  void trim();

  PrivateFolder folder_;
  std::uint64_t limit_;
  std::mutex mutex_;
};

}  // namespace tenon::host
