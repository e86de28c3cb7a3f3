// The place of the middle element of a lane.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/dtype.h"
#include "core/ops/lanes/stable_order.h"

namespace tenon::ops {

/// Gives the place of the lower of a lane's two middles, of equal ones the place that a stable order has there; the first nan, or nan left out
/// (aten/src/ATen/native/Sorting.cpp, median_with_indices_impl). K is double or int64, as each_lane reads elements of `dtype`. Keeps its memory
/// from lane to lane.
template <class K>
class MedianPlace {
 public:
  MedianPlace(DType dtype, bool ignore_nan) : narrow_(size_of(dtype) <= 4), ignore_nan_(ignore_nan) {}

  std::int64_t of(std::span<const K> lane) { return narrow_ ? place(lane, keys32_, spare32_) : place(lane, keys64_, spare64_); }

 private:
  template <class Key>
  std::int64_t place(std::span<const K> lane, std::vector<Key>& keys, std::vector<Key>& spare) {
    std::size_t nans = 0;
    if constexpr (std::is_floating_point_v<K>) {
      for (const K x : lane) nans += x != x;
      if (nans > 0 && (!ignore_nan_ || nans == lane.size())) return std::ranges::find_if(lane, [](K x) { return x != x; }) - lane.begin();
    }
    keys.resize(lane.size());
    for (std::size_t i = 0; i < lane.size(); ++i) keys[i] = ordered_key<Key>(lane[i]);
    spare = keys;
    const std::size_t middle = (lane.size() - nans - 1) / 2;  // nan comes last
    const Key key = at_rank<Key>(spare, middle);
    auto left = middle - static_cast<std::size_t>(std::ranges::count_if(keys, [&](Key k) { return k < key; }));
    const auto found = std::ranges::find_if(keys, [&](Key k) { return k == key && left-- == 0; });
    return found - keys.begin();
  }

  /// The key that stands there in order: those that share its highest digits are kept, until few are left.
  template <class Key>
  static Key at_rank(std::span<Key> keys, std::size_t rank) {
    constexpr int kBits = 11;
    constexpr std::size_t kFew = 2048;
    std::array<std::uint32_t, std::size_t{1} << kBits> counts;
    for (int shift = sizeof(Key) * 8 - kBits; keys.size() > kFew && keys.size() <= UINT32_MAX; shift = std::max(shift - kBits, 0)) {
      const auto digit = [&](Key key) { return static_cast<std::size_t>(key >> shift) & (counts.size() - 1); };
      counts.fill(0);
      for (const Key key : keys) ++counts[digit(key)];
      std::size_t wanted = 0;
      while (rank >= counts[wanted]) rank -= counts[wanted++];
      std::size_t kept = 0;
      for (const Key key : keys) {
        keys[kept] = key;
        kept += digit(key) == wanted;
      }
      keys = keys.first(kept);
      if (shift == 0) return keys[0];
    }
    const auto at = keys.begin() + static_cast<std::ptrdiff_t>(rank);
    std::ranges::nth_element(keys, at);
    return *at;
  }

  bool narrow_, ignore_nan_;
  std::vector<std::uint32_t> keys32_, spare32_;
  std::vector<std::uint64_t> keys64_, spare64_;
};

}  // namespace tenon::ops
