#include "host/machine/memory_pool.h"

#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "catch.h"

using namespace tenon::host;

TEST_CASE("memory comes back warm and aligned", "[pool]") {
  for (std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{64}, std::size_t{65}, std::size_t{100000}, std::size_t{1} << 20, (std::size_t{3} << 20) + 5}) {
    void* first = pool_allocate(bytes);
    REQUIRE(first != nullptr);
    CHECK(reinterpret_cast<std::uintptr_t>(first) % (bytes >= (1u << 20) ? 4096 : 64) == 0);
    std::memset(first, 1, bytes);
    pool_release(first, bytes);
    void* second = pool_allocate(bytes);
    CHECK(second == first);
    pool_release(second, bytes);
  }
}

TEST_CASE("a class serves every size that maps to it", "[pool]") {
  const std::uint64_t before = pool_statistics().used_bytes;
  std::vector<std::pair<void*, std::size_t>> blocks;
  for (std::size_t bytes = 1; bytes < 5000; ++bytes) {
    void* memory = pool_allocate(bytes);
    std::memset(memory, static_cast<int>(bytes), bytes);
    blocks.emplace_back(memory, bytes);
  }
  for (auto [memory, bytes] : blocks) {
    for (std::size_t i = 0; i < bytes; ++i)
      if (static_cast<unsigned char*>(memory)[i] != static_cast<unsigned char>(bytes)) FAIL("block of " << bytes << " was written by another");
    pool_release(memory, bytes);
  }
  CHECK(pool_statistics().used_bytes == before);
}

TEST_CASE("idle memory is bounded, and trimming gives it back", "[pool]") {
  pool_set_idle_limit(std::size_t{8} << 20);
  std::vector<void*> blocks;
  for (int i = 0; i < 16; ++i) blocks.push_back(pool_allocate(std::size_t{1} << 20));
  for (void* block : blocks) pool_release(block, std::size_t{1} << 20);
  CHECK(pool_statistics().idle_bytes <= (std::size_t{8} << 20));
  pool_trim();
  CHECK(pool_statistics().idle_bytes == 0);
  pool_set_idle_limit(std::size_t{1} << 30);
}

TEST_CASE("the memory of two large runs that take turns stays mapped", "[pool]") {
  pool_trim();
  pool_set_idle_limit(std::size_t{3} << 30);
  constexpr std::size_t kOfOne = std::size_t{896} << 20, kOfOther = std::size_t{768} << 20;  // never written: no page of it is the machine's
  pool_release(pool_allocate(kOfOne), kOfOne);
  pool_release(pool_allocate(kOfOther), kOfOther);
  const std::uint64_t mapped = pool_statistics().mapped_bytes;
  for (int i = 0; i < 4; ++i) {
    pool_release(pool_allocate(kOfOne), kOfOne);
    pool_release(pool_allocate(kOfOther), kOfOther);
  }
  CHECK(pool_statistics().mapped_bytes == mapped);
  pool_trim();
  pool_set_idle_limit(std::size_t{1} << 30);
}

TEST_CASE("blocks that nobody needs any more go by the low-water mark", "[pool]") {
  pool_trim();
  std::vector<void*> blocks;
  for (int i = 0; i < 20; ++i) blocks.push_back(pool_allocate(std::size_t{2} << 20));
  for (void* block : blocks) pool_release(block, std::size_t{2} << 20);
  CHECK(pool_statistics().idle_bytes >= std::size_t{20} * (std::size_t{2} << 20));
  for (int i = 0; i < 600; ++i) pool_release(pool_allocate(std::size_t{2} << 20), std::size_t{2} << 20);
  CHECK(pool_statistics().idle_bytes <= std::size_t{2} * (std::size_t{2} << 20));
}

TEST_CASE("a mapped block is at most a sixteenth larger than was asked for", "[pool]") {
  for (std::size_t bytes : {(std::size_t{1} << 20) + 1, std::size_t{9} << 20, std::size_t{100'000'000}, (std::size_t{1} << 30) - 1}) {
    const std::uint64_t before = pool_statistics().used_bytes;
    void* memory = pool_allocate(bytes);
    const std::uint64_t used = pool_statistics().used_bytes - before;
    CHECK(used >= bytes);
    CHECK(used <= bytes + bytes / 16 + 1);
    pool_release(memory, bytes);
  }
}

TEST_CASE("runs that take turns have one memory, unless one needs far less", "[pool]") {
  constexpr std::size_t kMiB = std::size_t{1} << 20;
  pool_trim();
  const void* larger = PoolBlock::for_a_while(50 * kMiB).data();
  CHECK(PoolBlock::for_a_while(30 * kMiB).data() == larger);
  CHECK(PoolBlock::for_a_while(10 * kMiB).data() != larger);
  CHECK(pool_statistics().idle_bytes == 60 * kMiB);
  SECTION("the one who needs all of it keeps it") {
    for (int i = 0; i < 40; ++i) {
      CHECK(PoolBlock::for_a_while(50 * kMiB).data() == larger);
      CHECK(PoolBlock::for_a_while(30 * kMiB).data() == larger);
    }
    CHECK(pool_statistics().idle_bytes == 50 * kMiB);
  }
  SECTION("where nobody does any more it goes") {
    for (int i = 0; i < 40; ++i) PoolBlock::for_a_while(30 * kMiB);
    CHECK(pool_statistics().idle_bytes == 30 * kMiB);
  }
  pool_trim();
}

TEST_CASE("threads share the pool", "[pool]") {
  const std::uint64_t before = pool_statistics().used_bytes;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      std::mt19937 random(t);
      for (int i = 0; i < 2000; ++i) {
        const std::size_t bytes = 64 + random() % 4096;
        auto* memory = static_cast<unsigned char*>(pool_allocate(bytes));
        std::memset(memory, static_cast<int>(t), bytes);
        for (std::size_t k = 0; k < bytes; ++k)
          if (memory[k] != t) std::abort();
        pool_release(memory, bytes);
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(pool_statistics().used_bytes == before);
}

TEST_CASE("a block that remembers its size is aligned", "[pool]") {
  void* memory = pool_allocate_sized(1000);
  CHECK(reinterpret_cast<std::uintptr_t>(memory) % 64 == 0);
  pool_release_sized(memory);
  pool_release_sized(nullptr);
}
