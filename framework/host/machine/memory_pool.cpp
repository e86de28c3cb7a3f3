#include "host/machine/memory_pool.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>

#include "core/base/error.h"
#include "core/base/regular_file.h"

namespace tenon::host {
namespace {

constexpr std::size_t kSmallest = 64;
constexpr std::size_t kMapFrom = std::size_t{1} << 20;  // from here on blocks are mappings of their own
constexpr std::size_t kPage = 4096;
constexpr std::size_t kHugePage = std::size_t{1} << 21;  // x86-64's
constexpr std::size_t kLargestPooled = std::size_t{1} << 40;
constexpr unsigned kFirstMapped = (20 - 6) * 4;  // the class of blocks of kMapFrom
constexpr unsigned kClasses = kFirstMapped + (40 - 20) * 16 + 1;
constexpr std::size_t kLeastBetweenDecays = std::size_t{256} << 20;

/// Blocks of 64, 80, 96, 112, 128, 160, ... bytes; mapped ones of 16/16, 17/16, 18/16, ... of a power of two.
constexpr std::size_t class_bytes(unsigned c) {
  if (c < kFirstMapped) return (std::size_t{4} + c % 4) << (c / 4 + 4);
  c -= kFirstMapped;
  return (std::size_t{16} + c % 16) << (c / 16 + 16);
}

[[gnu::always_inline]] inline unsigned class_of(std::size_t bytes) {
  if (bytes <= kSmallest) return 0;
  const unsigned log = static_cast<unsigned>(std::bit_width(bytes - 1)) - 1;  // 2^log < bytes <= 2^(log + 1)
  const auto parts_above = [&](unsigned log_of_part) { return static_cast<unsigned>((bytes - 1 - (std::size_t{1} << log)) >> log_of_part) + 1; };
  if (bytes <= kMapFrom) return (log - 6) * 4 + parts_above(log - 2);
  return kFirstMapped + (log - 20) * 16 + parts_above(log - 4);
}

/// A test-and-set lock: held for a few loads and stores. A pthread mutex costs as much as all the rest of an allocation.
class SpinLock {
 public:
  void lock() {
    while (flag_.test_and_set(std::memory_order_acquire))
      while (flag_.test(std::memory_order_relaxed)) __builtin_ia32_pause();
  }
  void unlock() { flag_.clear(std::memory_order_release); }

 private:
  std::atomic_flag flag_ = ATOMIC_FLAG_INIT;
};

struct Block {
  Block* next;
};

/// The kept blocks of one size. `low` is the least number kept since the last decay: those were not needed, and go.
struct alignas(64) SizeClass {
  SpinLock lock;
  Block* top = nullptr;
  std::uint32_t kept = 0;
  std::uint32_t low = 0;
  std::uint64_t allocations = 0, reuses = 0, releases = 0;  // counted here, under the lock: atomics of their own would cost more than it
};

/// Idle memory is bounded without a sum over the classes, whose upkeep would cost a small allocation as much as its lock: each class of
/// small blocks has an equal share of a part of the limit, and the rest is for mapped ones, of which few are made and `idle` counts the bytes.
struct Pool {
  std::array<SizeClass, kClasses> classes;
  std::atomic<std::uint64_t> idle{0}, mapped{0};  // `idle`: in mapped blocks
  std::atomic<std::size_t> idle_limit{0};
  std::atomic<std::uint64_t> released{0};  // bytes of mapped blocks since the last look at the low-water marks
};

Pool& pool() {
  static Pool* const instance = [] {
    auto* p = new Pool;  // outlives static destructors: tensors may be freed at exit
    p->idle_limit = pool_default_limit();
    return p;
  }();
  return *instance;
}

void* from_system(Pool& p, std::size_t bytes) {
  p.mapped.fetch_add(bytes, std::memory_order_relaxed);
  if (bytes < kMapFrom) return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  void* memory = mmap(nullptr, (bytes + kPage - 1) / kPage * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  if (bytes >= kHugePage) madvise(memory, bytes, MADV_HUGEPAGE);  // a wish: the first write to a block of 64 MB takes half the time
  return memory;
}

void to_system(void* memory, std::size_t bytes) {
  if (bytes < kMapFrom)
    std::free(memory);
  else
    munmap(memory, (bytes + kPage - 1) / kPage * kPage);
}

void count_idle(Pool& p, std::size_t bytes, bool kept) {
  if (bytes < kMapFrom) return;
  if (kept) p.idle.fetch_add(bytes, std::memory_order_relaxed);
  else p.idle.fetch_sub(bytes, std::memory_order_relaxed);
}

/// Whether one more idle block stays below the bound. The lock of the class is held.
bool may_keep(const Pool& p, const SizeClass& size_class, std::size_t bytes) {
  constexpr std::size_t kSmallClasses = 64;  // a few more than there are
  constexpr std::size_t kMostOfSmall = std::size_t{1} << 30;
  const std::size_t limit = p.idle_limit.load(std::memory_order_relaxed);
  const std::size_t of_small = std::min(limit / 2, kMostOfSmall);
  if (bytes < kMapFrom) return (size_class.kept + 1) * bytes <= of_small / kSmallClasses;
  return p.idle.load(std::memory_order_relaxed) + bytes <= limit - of_small;
}

void free_chain(Pool& p, Block* chain, std::size_t bytes) {
  while (chain) {
    Block* next = chain->next;
    count_idle(p, bytes, false);
    to_system(chain, bytes);
    chain = next;
  }
}

/// Takes `count` blocks out of a class.
Block* take_chain(SizeClass& size_class, std::uint32_t count) {
  std::lock_guard lock(size_class.lock);
  count = std::min(count, size_class.kept);
  Block* chain = nullptr;
  for (std::uint32_t i = 0; i < count; ++i) {
    Block* block = size_class.top;
    size_class.top = block->next;
    block->next = chain;
    chain = block;
  }
  size_class.kept -= count;
  size_class.low = size_class.kept;
  return chain;
}

/// Gives back the blocks that no allocation has needed since the last decay.
void decay(Pool& p) {
  for (unsigned c = kFirstMapped; c < kClasses; ++c) {
    SizeClass& size_class = p.classes[c];
    std::uint32_t unneeded;
    {
      std::lock_guard lock(size_class.lock);
      unneeded = size_class.low;
    }
    free_chain(p, take_chain(size_class, unneeded), class_bytes(c));
  }
}

/// Takes a kept block; null where there is none. `borrows`: for less than the class is for, which is no need of such a block.
[[gnu::always_inline]] inline void* take_kept(SizeClass& size_class, bool borrows = false) {
  std::lock_guard lock(size_class.lock);
  Block* block = size_class.top;
  if (!block) return nullptr;
  ++size_class.allocations;
  ++size_class.reuses;
  size_class.top = block->next;
  --size_class.kept;
  if (!borrows) size_class.low = std::min(size_class.low, size_class.kept);
  return block;
}

/// Whether so much has been given back since the last decay that what a round of the program's work needs has been taken in between.
bool is_time_to_decay(Pool& p, std::size_t released) {
  constexpr std::uint64_t kRounds = 4;
  const std::uint64_t since = p.released.fetch_add(released, std::memory_order_relaxed) + released;
  if (since < std::max<std::uint64_t>(kRounds * p.idle.load(std::memory_order_relaxed), kLeastBetweenDecays)) return false;
  p.released.store(0, std::memory_order_relaxed);
  return true;
}

}  // namespace

// A training step's memory is taken and given back as a whole: where it is not kept, the system clears all of it again for every step.
std::size_t pool_default_limit() {
  constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
  return std::clamp(memory_of_machine() / 4, 2 * kGiB, 8 * kGiB);
}

void* pool_allocate(std::size_t bytes) {
  Pool& p = pool();
  if (bytes > kLargestPooled) return nullptr;
  const unsigned c = class_of(bytes);
  const std::size_t size = class_bytes(c);
  if (void* kept = take_kept(p.classes[c])) {
    count_idle(p, size, false);
    return kept;
  }
  if (bytes > memory_of_machine()) return nullptr;
  void* memory = from_system(p, size);
  if (!memory) {
    pool_trim();
    memory = from_system(p, size);
  }
  if (!memory) return nullptr;
  std::lock_guard lock(p.classes[c].lock);
  ++p.classes[c].allocations;
  return memory;
}

void pool_release(void* memory, std::size_t bytes) {
  if (!memory) return;
  Pool& p = pool();
  const unsigned c = class_of(bytes);
  const std::size_t size = class_bytes(c);
  auto* block = static_cast<Block*>(memory);
  SizeClass& size_class = p.classes[c];
  bool kept;
  {
    std::lock_guard lock(size_class.lock);
    ++size_class.releases;
    kept = may_keep(p, size_class, size);
    if (kept) {
      block->next = size_class.top;
      size_class.top = block;
      ++size_class.kept;
      count_idle(p, size, true);
    }
  }
  if (!kept) return to_system(memory, size);
  if (size >= kMapFrom && is_time_to_decay(p, size)) decay(p);
}

void* pool_allocate_sized(std::size_t bytes) {
  constexpr std::size_t kHeader = 64;  // keeps the alignment
  void* memory = bytes > kLargestPooled ? nullptr : pool_allocate(bytes + kHeader);
  if (!memory) return nullptr;
  *static_cast<std::size_t*>(memory) = bytes + kHeader;
  return static_cast<std::byte*>(memory) + kHeader;
}

void pool_release_sized(void* memory) {
  if (!memory) return;
  void* block = static_cast<std::byte*>(memory) - 64;
  pool_release(block, *static_cast<std::size_t*>(block));
}

void pool_trim() {
  Pool& p = pool();
  for (unsigned c = 0; c < kClasses; ++c) free_chain(p, take_chain(p.classes[c], UINT32_MAX), class_bytes(c));
}

void pool_set_idle_limit(std::size_t bytes) {
  Pool& p = pool();
  p.idle_limit.store(bytes, std::memory_order_relaxed);
  if (pool_statistics().idle_bytes > bytes) pool_trim();
}

PoolStatistics pool_statistics() {
  Pool& p = pool();
  PoolStatistics statistics{.mapped_bytes = p.mapped};
  for (unsigned c = 0; c < kClasses; ++c) {
    SizeClass& size_class = p.classes[c];
    std::lock_guard lock(size_class.lock);
    statistics.idle_bytes += size_class.kept * class_bytes(c);
    statistics.used_bytes += (size_class.allocations - size_class.releases) * class_bytes(c);
    statistics.allocations += size_class.allocations;
    statistics.reuses += size_class.reuses;
  }
  return statistics;
}

PoolBlock::PoolBlock(std::size_t bytes) : data_(pool_allocate(bytes)), bytes_(bytes) {
  if (!data_) throw Exception(Code::out_of_memory, fmt::format("no memory for {} bytes", bytes));
}

PoolBlock PoolBlock::for_a_while(std::size_t bytes) {
  Pool& p = pool();
  if (bytes >= kMapFrom && bytes <= kLargestPooled / 2)
    for (unsigned c = class_of(bytes), most = class_of(2 * bytes), own = c; c <= most; ++c) {
      void* kept = take_kept(p.classes[c], c != own);
      if (!kept) continue;
      count_idle(p, class_bytes(c), false);
      return PoolBlock(kept, class_bytes(c));
    }
  return PoolBlock(bytes);
}

PoolBlock& PoolBlock::operator=(PoolBlock&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace tenon::host
