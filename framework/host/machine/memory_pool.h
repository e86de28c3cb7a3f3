// Keeps freed host memory with its pages mapped: a fresh page costs more than the arithmetic on it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon::host {

struct PoolStatistics {
  std::uint64_t used_bytes = 0;     // handed out, as size classes
  std::uint64_t idle_bytes = 0;     // kept for reuse
  std::uint64_t allocations = 0;    // of blocks that are pooled
  std::uint64_t reuses = 0;         // of those, served from a kept block
  std::uint64_t mapped_bytes = 0;   // asked of the system since the start
};

/// Gives at least `bytes` of memory, 64-byte aligned (4096-byte from 1 MB on), uninitialised; null when there is none. Zero bytes
/// give memory too. Four size classes a doubling, sixteen from 1 MB on. Callable from any thread.
void* pool_allocate(std::size_t bytes);

/// Takes back what pool_allocate gave for the same `bytes`. Callable from any thread, also without the GIL; null is ignored.
void pool_release(void* memory, std::size_t bytes);

/// The same with the size remembered in front of the block: for callers that cannot keep it.
void* pool_allocate_sized(std::size_t bytes);
void pool_release_sized(void* memory);

/// Returns all kept memory to the system.
void pool_trim();

/// The most bytes kept idle where nobody sets it: a quarter of the machine's memory, at least 2 GiB and at most 8.
std::size_t pool_default_limit();

/// Sets it.
void pool_set_idle_limit(std::size_t bytes);

PoolStatistics pool_statistics();

/// A block of the pool that frees itself.
class PoolBlock {
 public:
  PoolBlock() = default;
  explicit PoolBlock(std::size_t bytes);
  /// One for the time of a run: a kept one of up to twice the size serves too, so that runs that take turns have one memory. Throws.
  static PoolBlock for_a_while(std::size_t bytes);
  PoolBlock(PoolBlock&& other) noexcept : data_(other.data_), bytes_(other.bytes_) { other.data_ = nullptr, other.bytes_ = 0; }
  PoolBlock& operator=(PoolBlock&& other) noexcept;
  ~PoolBlock() { pool_release(data_, bytes_); }

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  std::size_t size() const { return bytes_; }

 private:
  PoolBlock(void* data, std::size_t bytes) : data_(data), bytes_(bytes) {}

  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace tenon::host
