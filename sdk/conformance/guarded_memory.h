// Memory whose surroundings show whether someone wrote outside of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tenon::conformance {

/// A block of bytes at a chosen distance from a 64-byte boundary, with a pattern before and behind it.
class GuardedMemory {
 public:
  /// `misalignment`: bytes past a 64-byte boundary, below 64.
  explicit GuardedMemory(std::size_t size, std::size_t misalignment = 0);
  GuardedMemory(GuardedMemory&&) = default;
  GuardedMemory& operator=(GuardedMemory&&) = default;

  std::byte* data() { return start_; }
  const std::byte* data() const { return start_; }
  std::size_t size() const { return size_; }
  void fill(std::byte value);
  /// True while the bytes around the block are as they were.
  bool intact() const;

 private:
  std::vector<std::byte> storage_;
  std::byte* start_;
  std::size_t size_;
};

}  // namespace tenon::conformance
