// The order of the elements of a lane: ascending or descending, equal elements as they stand.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/dtype.h"

namespace tenon::ops {

/// A number without a sign that has the order of an element, as each_lane reads it: nan is the largest, and -0 equals 0.
template <class Key, class K>
inline Key ordered_key(K x) {
  constexpr Key kSign = Key{1} << (sizeof(Key) * 8 - 1);
  if constexpr (std::is_floating_point_v<K>) {
    using Float = std::conditional_t<sizeof(Key) == 4, float, double>;
    const Key bits = std::bit_cast<Key>(static_cast<Float>(x) + Float{0});  // 0 is added to -0
    return x != x ? ~Key{0} : (bits & kSign) ? ~bits : bits | kSign;
  } else {
    return static_cast<Key>(x) ^ kSign;
  }
}

/// Gives the places of a lane's elements in order; nan counts as larger than all numbers, and -0 as 0. K is double or int64, as each_lane
/// reads elements of `dtype`. Keeps its memory from lane to lane.
template <class K>
class StableOrder {
 public:
  StableOrder(DType dtype, bool descending) : narrow_(size_of(dtype) <= 4), descending_(descending) {}

  std::span<const std::int64_t> of(std::span<const K> lane) {
    order_.resize(lane.size());
    if (narrow_ && lane.size() <= UINT32_MAX)
      sort(lane, items32_, spare32_);
    else
      sort(lane, items64_, spare64_);
    return order_;
  }

 private:
  template <class Key>
  struct Item {
    Key key, place;
  };
  template <class Key>
  using Items = std::vector<Item<Key>>;

  template <class Key>
  Key key_of(K x) const {
    const Key key = ordered_key<Key>(x);
    return descending_ ? ~key : key;
  }

  template <class Key>
  void sort(std::span<const K> lane, Items<Key>& items, Items<Key>& spare) {
    items.resize(lane.size());
    for (std::size_t i = 0; i < lane.size(); ++i) items[i] = {key_of<Key>(lane[i]), static_cast<Key>(i)};
    if (lane.size() < kFew)
      insert(items);
    else
      distribute(items, spare);
    for (std::size_t i = 0; i < items.size(); ++i) order_[i] = static_cast<std::int64_t>(items[i].place);
  }

  template <class Key>
  static void insert(Items<Key>& items) {
    for (std::size_t i = 1; i < items.size(); ++i) {
      const Item<Key> item = items[i];
      std::size_t k = i;
      for (; k > 0 && items[k - 1].key > item.key; --k) items[k] = items[k - 1];
      items[k] = item;
    }
  }

  /// A radix sort from the least digit; digits that all keys share cost nothing but their count.
  template <class Key>
  static void distribute(Items<Key>& items, Items<Key>& spare) {
    constexpr std::size_t kDigits = sizeof(Key);
    const auto digit = [](const Item<Key>& item, std::size_t d) { return static_cast<std::size_t>(item.key >> (8 * d)) & 255; };
    std::array<std::array<std::size_t, 256>, kDigits> starts{};
    for (const Item<Key>& item : items)
      for (std::size_t d = 0; d < kDigits; ++d) ++starts[d][digit(item, d)];
    spare.resize(items.size());
    for (std::size_t d = 0; d < kDigits; ++d) {
      if (starts[d][digit(items[0], d)] == items.size()) continue;
      std::size_t next = 0;
      for (std::size_t& start : starts[d]) next += std::exchange(start, next);
      for (const Item<Key>& item : items) spare[starts[d][digit(item, d)]++] = item;
      items.swap(spare);
    }
  }

  static constexpr std::size_t kFew = 48;  // below, insertion is faster

  bool narrow_, descending_;
  std::vector<std::int64_t> order_;
  Items<std::uint32_t> items32_, spare32_;
  Items<std::uint64_t> items64_, spare64_;
};

}  // namespace tenon::ops
