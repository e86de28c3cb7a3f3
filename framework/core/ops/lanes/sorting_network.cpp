#include "core/ops/lanes/sorting_network.h"

#include <bit>

namespace tenon::ops {
namespace {

/// Merge exchange: Knuth, The Art of Computer Programming, volume 3, 5.2.2, algorithm M.
template <class Key>
[[gnu::always_inline]] inline void merge_exchange(Abreast<Key>* rows, std::size_t count) {
  const std::size_t top = std::bit_ceil(count) / 2;
  for (std::size_t p = top; p > 0; p /= 2) {
    std::size_t distance = p, odd = 0;
    for (std::size_t q = top;; q /= 2) {
      for (std::size_t i = 0; i + distance < count; ++i) {
        if ((i & p) != odd) continue;
        const auto a = rows[i].elements, b = rows[i + distance].elements;
        rows[i].elements = a < b ? a : b;
        rows[i + distance].elements = a < b ? b : a;
      }
      if (q == p) break;
      distance = q - p, odd = p;
    }
  }
}

#ifdef __x86_64__
template <class Key>
[[gnu::target("avx2")]] void merge_exchange_avx2(Abreast<Key>* rows, std::size_t count) { merge_exchange(rows, count); }
template <class Key>
[[gnu::target("avx512f")]] void merge_exchange_avx512(Abreast<Key>* rows, std::size_t count) { merge_exchange(rows, count); }
#endif

template <class Key>
void sort(std::span<Abreast<Key>> rows) {
#ifdef __x86_64__
  static const bool has_avx2 = __builtin_cpu_supports("avx2"), has_avx512 = __builtin_cpu_supports("avx512f");
  if (has_avx512) return merge_exchange_avx512(rows.data(), rows.size());
  if (has_avx2) return merge_exchange_avx2(rows.data(), rows.size());
#endif
  merge_exchange(rows.data(), rows.size());
}

}  // namespace

void sort_abreast(std::span<Abreast<std::int32_t>> rows) { sort(rows); }
void sort_abreast(std::span<Abreast<std::int64_t>> rows) { sort(rows); }

}  // namespace tenon::ops
