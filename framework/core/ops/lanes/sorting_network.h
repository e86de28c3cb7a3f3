// Short lanes sorted side by side: the same comparisons for all of them, whatever their elements are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tenon::ops {

/// An element of each of several lanes: 16 of 32 bits, or 8 of 64.
template <class Key>
struct alignas(64) Abreast {
  static constexpr std::size_t kLanes = 64 / sizeof(Key);
  typedef Key Elements [[gnu::vector_size(64)]];
  Elements elements;
};

/// Sorts the elements of every lane, ascending. `rows[i]` holds the i-th elements.
void sort_abreast(std::span<Abreast<std::int32_t>> rows);
void sort_abreast(std::span<Abreast<std::int64_t>> rows);

}  // namespace tenon::ops
