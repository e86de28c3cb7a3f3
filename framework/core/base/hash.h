// Hashing: 128 bits for contents (cache keys, constants), 64 bits for tables.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tenon {

/// 128 bits that stand for some contents. Not cryptographic: it guards against accidents, not against malice.
struct Hash128 {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend auto operator<=>(const Hash128&, const Hash128&) = default;

  /// 32 lower-case hexadecimal digits.
  std::string hex() const;
};

/// The hash of some bytes: MurmurHash3_x64_128 (https://github.com/aappleby/smhasher), stable across versions and machines. `seed`
/// chains several pieces: `content_hash(b, n, content_hash(a, m).low)` differs from the hash of either.
Hash128 content_hash(const void* data, std::size_t size, std::uint64_t seed = 0);
inline Hash128 content_hash(std::string_view text, std::uint64_t seed = 0) { return content_hash(text.data(), text.size(), seed); }

/// Mixes one more word into a hash for a table in memory.
constexpr std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  const std::uint64_t x = (hash ^ word) * 0x9e3779b97f4a7c15ull;
  return x ^ (x >> 29);
}

}  // namespace tenon

template <>
struct std::hash<tenon::Hash128> {
  std::size_t operator()(const tenon::Hash128& h) const noexcept { return h.low ^ h.high; }
};
