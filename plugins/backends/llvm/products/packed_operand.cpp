#include "packed_operand.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

namespace tenon::llvm_backend {
namespace {

constexpr std::size_t kChunk = 128 * 1024, kStripe = 64;
/// Readable bytes after the panels: microkernels fetch ahead.
constexpr std::size_t kReadAhead = 4096;
/// The most calls without a look at the content, as a power of 2.
constexpr int kMostSkipped = 10;
constexpr std::array<std::uint64_t, 8> kSecrets = {0x9e3779b97f4a7c15, 0xd1b54a32d192ed03, 0x8cb92ba72f3d8dd7, 0xaef17502108ef2d9,
                                                   0xa0761d6478bd642f, 0xe7037ed1a0b428db, 0x8ebc6af09c88c6e3, 0x589965cc75374cc3};

/// The halves of a 128-bit product, folded: the mixing step of wyhash (github.com/wangyi-fudan/wyhash).
std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

using Stripe = std::array<std::uint64_t, 8>;

/// Four chains side by side, so that multiplications overlap.
struct Chains {
  std::array<std::uint64_t, 4> state = {kSecrets[0], kSecrets[1], kSecrets[2], kSecrets[3]};

  void take(const std::byte* from) {
    Stripe w;
    std::memcpy(w.data(), from, sizeof w);
    for (std::size_t i = 0; i < 4; ++i) state[i] = mixed(w[2 * i] ^ kSecrets[4 + i], w[2 * i + 1] ^ state[i]);
  }
  Digest digest() const { return {mixed(state[0] ^ kSecrets[4], state[1]) ^ mixed(state[2] ^ kSecrets[5], state[3]), mixed(state[0] ^ kSecrets[6], state[2]) + mixed(state[1] ^ kSecrets[7], state[3])}; }
};

Digest digest_of_chunk(const std::byte* bytes, std::size_t size) {
  Chains chains;
  std::size_t at = 0;
  for (; at + kStripe <= size; at += kStripe) chains.take(bytes + at);
  std::array<std::byte, kStripe> rest{};
  std::copy(bytes + at, bytes + size, rest.begin());  // nothing where an operand has no bytes and lies nowhere
  chains.take(rest.data());
  const Stripe length{size};
  chains.take(reinterpret_cast<const std::byte*>(length.data()));
  return chains.digest();
}

std::shared_ptr<void> allocate(std::size_t bytes) {
  void* memory = std::aligned_alloc(64, (bytes + kReadAhead + 63) & ~std::size_t{63});
  if (!memory) throw std::bad_alloc();
  return {memory, std::free};
}

}  // namespace

Digest digest_of(const HostServices& host, const void* bytes, std::size_t size, std::span<const std::int64_t> seed) {
  const std::size_t chunks = (size + kChunk - 1) / kChunk;
  std::vector<Digest> parts(chunks);
  host.parallel_for(0, static_cast<std::int64_t>(chunks), 4, [&](std::int64_t first, std::int64_t last) {
    for (auto i = static_cast<std::size_t>(first); i < static_cast<std::size_t>(last); ++i)
      parts[i] = digest_of_chunk(static_cast<const std::byte*>(bytes) + i * kChunk, std::min(kChunk, size - i * kChunk));
  });
  const Digest of_seed = digest_of_chunk(reinterpret_cast<const std::byte*>(seed.data()), seed.size_bytes());
  const Digest of_parts = digest_of_chunk(reinterpret_cast<const std::byte*>(parts.data()), parts.size() * sizeof(Digest));
  return {of_parts.low ^ of_seed.low, of_parts.high + of_seed.high};
}

PackedOperand::Memory PackedOperand::find(const HostServices& host, const PackedSource& source, const std::function<void(void*)>& pack) {
  {
    const std::lock_guard lock(mutex_);
    if (skipped_calls_ > 0) {
      --skipped_calls_;
      return nullptr;
    }
  }
  const Digest digest = digest_of(host, source.constant ? nullptr : source.bytes, source.constant ? 0 : source.size, source.layout);
  {
    const std::lock_guard lock(mutex_);
    const bool is_same = is_known_ && digest == digest_;
    if (is_same && memory_) {
      changes_ = 0;
      return memory_;
    }
    if (!is_same && !source.constant) {
      if (is_known_) changes_ = std::min(changes_ + 1, kMostSkipped), skipped_calls_ = 1 << changes_;
      memory_.reset();
      digest_ = digest, is_known_ = true;
      return nullptr;
    }
  }
  Memory memory = allocate(source.packed_bytes);
  pack(memory.get());
  const std::lock_guard lock(mutex_);
  digest_ = digest, is_known_ = true, memory_ = memory;
  return memory;
}

}  // namespace tenon::llvm_backend
