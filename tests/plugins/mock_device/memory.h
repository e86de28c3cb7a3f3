// Memory of which the host knows only addresses: they are reserved and never readable. The same bytes lie at another address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

namespace tenon::mock {

/// Thread-safe. Blocks are aligned to 256 bytes, with marks around them; fresh and freed memory is filled with marks.
class Memory {
 public:
  explicit Memory(std::size_t bytes);
  ~Memory();
  Memory(const Memory&) = delete;

  /// An address that nobody may read. Throws a Failure (TENON_OUT_OF_MEMORY).
  void* allocate(std::size_t bytes);
  /// Throws a Failure where the address is no block of that size, or something has written beside it.
  void release(void* address, std::size_t bytes);

  /// Where the bytes are that the host knows under this address. Throws a Failure unless all `bytes` of them lie in one block.
  std::byte* reach(const void* address, std::size_t bytes = 0);

  std::size_t bytes() const { return bytes_; }
  std::size_t used_blocks() const;

 private:
  std::byte* own(std::size_t offset) const { return own_ + offset; }

  std::size_t bytes_;
  std::byte* seen_;  // PROT_NONE
  std::byte* own_;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::size_t> free_;  // size by offset
  std::map<std::size_t, std::size_t> used_;  // bytes asked for, by offset of the first
};

}  // namespace tenon::mock
