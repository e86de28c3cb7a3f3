// The elements of a lane in order, where nobody asks where they stood.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/ops/lanes/sorting_network.h"

namespace tenon::ops {

/// Sorts lanes of float, double, std::int32_t or std::int64_t; nan counts as larger than all numbers, and -0 as 0. Elements that are equal
/// stay as they stand, which zeros and nans show. Keeps its memory from lane to lane.
template <class T>
class SortedValues {
 public:
  /// The bits of an element.
  using Key = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  using Signed = std::make_signed_t<Key>;
  using Row = Abreast<Signed>;

  /// The lengths for which sorting lanes abreast is faster.
  static constexpr std::size_t kLeastAbreast = 2, kMostAbreast = 1024;

  explicit SortedValues(bool descending) : descending_(descending) {}

  /// Sorts in place.
  void sort(std::span<Key> lane) {
    if (spare_.size() < lane.size()) spare_.resize(lane.size());
    bool shows = false;
    for (const Key bits : lane) shows |= shows_order(bits);
    if (shows) note_equal(lane);
    for (Key& bits : lane) bits = key_of(bits);
    order(lane, std::span(spare_).first(lane.size()), sizeof(Key));
    if (shows) place_equal(lane);
    for (Key& key : lane) key = bits_of(key);
    if (!shows) return;
    std::ranges::copy(zeros_, lane.begin() + first_zero_);
    std::ranges::copy(nans_, lane.begin() + first_nan_);
  }

  /// True where an element that equals this one may have other bits.
  static bool shows_order(Key bits) {
    if constexpr (kFloat) return bits == kSign || is_nan(bits);
    return false;
  }

  /// Sorts up to Row::kLanes lanes, whose elements must not show an order. `read(lane, i)` and `write(lane, i, bits)` reach their elements.
  template <class Read, class Write>
  void sort_abreast(std::size_t lanes, std::size_t size, Read read, Write write) {
    const Signed turned = -Signed{descending_};
    rows_.resize(size);
    for (std::size_t lane = 0; lane < lanes; ++lane)
      for (std::size_t i = 0; i < size; ++i) rows_[i].elements[lane] = ordered(std::bit_cast<Signed>(read(lane, i))) ^ turned;
    ops::sort_abreast(std::span(rows_));
    for (std::size_t lane = 0; lane < lanes; ++lane)
      for (std::size_t i = 0; i < size; ++i) write(lane, i, std::bit_cast<Key>(ordered(rows_[i].elements[lane] ^ turned)));
  }

 private:
  static constexpr bool kFloat = std::is_floating_point_v<T>;
  static constexpr Key kSign = Key{1} << (sizeof(Key) * 8 - 1);
  static constexpr std::size_t kFew = 48;  // below, insertion is faster

  /// Numbers that have the order of elements which show none, from their bits; and back.
  static Signed ordered(Signed bits) {
    if constexpr (kFloat) bits ^= static_cast<Signed>(static_cast<Key>(bits >> (sizeof(Key) * 8 - 1)) & ~kSign);
    return bits;
  }

  static bool is_nan(Key bits) { return (bits & ~kSign) > std::bit_cast<Key>(std::numeric_limits<T>::infinity()); }

  /// Numbers without a sign that have the order of the elements.
  Key key_of(Key bits) const {
    Key key = bits ^ kSign;
    if constexpr (kFloat) key = is_nan(bits) ? ~Key{0} : bits == kSign ? kSign : (bits & kSign) ? ~bits : bits | kSign;
    return descending_ ? ~key : key;
  }

  Key bits_of(Key key) const {
    if (descending_) key = ~key;
    return !kFloat || (key & kSign) ? key ^ kSign : ~key;
  }

  void note_equal(std::span<const Key> lane) {
    zeros_.clear(), nans_.clear();
    for (const Key bits : lane) {
      if ((bits & ~kSign) == 0) zeros_.push_back(bits);
      else if (is_nan(bits)) nans_.push_back(bits);
    }
  }

  /// Finds where they go.
  void place_equal(std::span<const Key> keys) {
    const auto place = [&](Key bits) { return std::ranges::lower_bound(keys, key_of(bits)) - keys.begin(); };
    first_zero_ = place(0);
    first_nan_ = place(~kSign);
  }

  static std::size_t digit(Key key, std::size_t d) { return static_cast<std::size_t>(key >> (8 * d)) & 255; }

  static void insert(std::span<Key> keys) {
    for (std::size_t i = 1; i < keys.size(); ++i) {
      const Key key = keys[i];
      std::size_t k = i;
      for (; k > 0 && keys[k - 1] > key; --k) keys[k] = keys[k - 1];
      keys[k] = key;
    }
  }

  /// A radix sort of keys that differ in their `digits` lowest bytes. It goes by as many high digits as tell most keys apart, from the least of
  /// them on; what those leave equal is then sorted run by run.
  static void order(std::span<Key> keys, std::span<Key> spare, std::size_t digits) {
    if (keys.size() < kFew) return insert(keys);
    std::array<std::array<std::size_t, 256>, sizeof(Key)> counts{};
    for (const Key key : keys)
      for (std::size_t d = 0; d < digits; ++d) ++counts[d][digit(key, d)];
    const auto count = static_cast<double>(keys.size());
    std::size_t lowest = digits;
    for (double told = 0; lowest > 0 && told < std::log2(count) + 2;) told += information(counts[--lowest], count);
    std::span<Key> from = keys, to = spare;
    for (std::size_t d = lowest; d < digits; ++d) {
      if (counts[d][digit(from[0], d)] == keys.size()) continue;
      std::size_t next = 0;
      for (std::size_t& start : counts[d]) next += std::exchange(start, next);
      for (const Key key : from) to[counts[d][digit(key, d)]++] = key;
      std::swap(from, to);
    }
    if (from.data() != keys.data()) std::ranges::copy(from, keys.begin());
    if (lowest > 0) order_runs(keys, spare, lowest);
  }

  /// How many bits a digit tells of a key, as far as two keys seldom share it.
  static double information(const std::array<std::size_t, 256>& counts, double count) {
    double squares = 0;
    for (const std::size_t n : counts) squares += static_cast<double>(n) * static_cast<double>(n);
    return std::log2(count * count / squares);
  }

  /// Sorts every run of keys that differ in their `digits` lowest bytes alone.
  static void order_runs(std::span<Key> keys, std::span<Key> spare, std::size_t digits) {
    for (std::size_t from = 0, to = 1; from < keys.size(); from = to++) {
      while (to < keys.size() && keys[to] >> (8 * digits) == keys[from] >> (8 * digits)) ++to;
      if (to - from > 1) order(keys.subspan(from, to - from), spare.subspan(from, to - from), digits);
    }
  }

  bool descending_;
  std::vector<Key> spare_, zeros_, nans_;
  std::vector<Row> rows_;
  std::ptrdiff_t first_zero_ = 0, first_nan_ = 0;
};

}  // namespace tenon::ops
