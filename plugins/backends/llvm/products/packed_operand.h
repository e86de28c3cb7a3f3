// Packed weights from call to call, behind a hash of their content: no write to them is ever missed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>

#include "tenon/host_services.h"

namespace tenon::llvm_backend {

struct Digest {
  std::uint64_t low = 0, high = 0;
  friend bool operator==(const Digest&, const Digest&) = default;
};

/// Hashes on the host's threads, at about the speed of memory. Not for content that somebody chooses to collide.
Digest digest_of(const HostServices& host, const void* bytes, std::size_t size, std::span<const std::int64_t> seed);

/// What is packed, and how.
struct PackedSource {
  const void* bytes = nullptr;
  std::size_t size = 0;
  bool constant = false;                 // the bytes never change
  std::span<const std::int64_t> layout;  // the numbers that the packed form depends on besides
  std::size_t packed_bytes = 0;
};

/// The packed form of one operand of a program. Thread-safe.
class PackedOperand {
 public:
  using Memory = std::shared_ptr<void>;

  /// Gives what `pack` wrote for the same content and layout, now or earlier. Null where content that may change is met for the first time: what training
  /// steps change is never kept. And for a while after it has changed between calls: then packing each time is cheaper than hashing too.
  Memory find(const HostServices& host, const PackedSource& source, const std::function<void(void*)>& pack);

 private:
  std::mutex mutex_;
  Digest digest_;
  bool is_known_ = false;  // the digest of the last content that was looked at
  Memory memory_;
  int changes_ = 0, skipped_calls_ = 0;
};

}  // namespace tenon::llvm_backend
