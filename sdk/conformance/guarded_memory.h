// Memory whose surroundings show whether someone touched what is outside of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace tenon::conformance {

/// A block of bytes between pages that cannot be touched. It lies as close to the page behind it as its alignment allows; a pattern fills
/// what is left between the block and the pages.
class GuardedMemory {
 public:
  /// Where a block begins.
  enum class Start : std::uint8_t {
    aligned,    // at a multiple of 64 bytes
    page_end,   // so that it ends where the page behind begins
  };
  /// `misalignment`: bytes past a 64-byte boundary, below 64.
  explicit GuardedMemory(std::size_t size, std::size_t misalignment = 0, Start start = Start::aligned);

  std::byte* data() { return start_; }
  const std::byte* data() const { return start_; }
  std::size_t size() const { return size_; }
  void fill(std::byte value);
  /// True while the bytes around the block are as they were.
  bool intact() const;

 private:
  struct Unmap {
    std::size_t bytes;
    void operator()(std::byte* mapping) const;
  };
  std::unique_ptr<std::byte, Unmap> mapping_;
  std::byte* begin_;  // of what may be touched
  std::byte* end_;
  std::byte* start_;
  std::size_t size_;
};

}  // namespace tenon::conformance
