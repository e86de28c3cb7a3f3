#include "core/base/hash.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

namespace tenon {
namespace {

constexpr std::uint64_t kC1 = 0x87c37b91114253d5ull, kC2 = 0x4cf5ad432745937full;

std::uint64_t load(const unsigned char* p, std::size_t bytes = 8) {
  std::uint64_t word = 0;
  std::memcpy(&word, p, bytes);
  return word;
}

std::uint64_t finish(std::uint64_t k) {
  k = (k ^ (k >> 33)) * 0xff51afd7ed558ccdull;
  k = (k ^ (k >> 33)) * 0xc4ceb9fe1a85ec53ull;
  return k ^ (k >> 33);
}

std::uint64_t scramble_low(std::uint64_t k) { return std::rotl(k * kC1, 31) * kC2; }
std::uint64_t scramble_high(std::uint64_t k) { return std::rotl(k * kC2, 33) * kC1; }

}  // namespace

Hash128 content_hash(const void* data, std::size_t size, std::uint64_t seed) {
  const auto* p = static_cast<const unsigned char*>(data);
  std::uint64_t h1 = seed, h2 = seed;
  const unsigned char* end = p + size / 16 * 16;
  for (; p != end; p += 16) {
    h1 = (std::rotl(h1 ^ scramble_low(load(p)), 27) + h2) * 5 + 0x52dce729;
    h2 = (std::rotl(h2 ^ scramble_high(load(p + 8)), 31) + h1) * 5 + 0x38495ab5;
  }
  const std::size_t rest = size % 16;
  if (rest > 8) h2 ^= scramble_high(load(p + 8, rest - 8));
  if (rest > 0) h1 ^= scramble_low(load(p, rest < 8 ? rest : 8));
  h1 ^= size;
  h2 ^= size;
  h1 += h2;
  h2 += h1;
  h1 = finish(h1);
  h2 = finish(h2);
  h1 += h2;
  return {h1, h2 + h1};
}

std::string Hash128::hex() const { return fmt::format("{:016x}{:016x}", low, high); }

}  // namespace tenon
