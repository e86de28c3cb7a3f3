#include "host/machine/strided_copy.h"

#include <numeric>
#include <random>
#include <vector>

#include "catch.h"

using namespace tenon::host;
using Sizes = std::vector<std::int64_t>;

namespace {

Sizes row_major(const Sizes& sizes) {
  Sizes strides(sizes.size());
  std::int64_t stride = 1;
  for (std::size_t i = sizes.size(); i-- > 0; stride *= sizes[i]) strides[i] = stride;
  return strides;
}

}  // namespace

TEST_CASE("a copy is the same as element by element", "[copy]") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const std::size_t rank = random() % 5;
    Sizes sizes, from_strides(rank);
    for (std::size_t d = 0; d < rank; ++d) sizes.push_back(1 + random() % 7);
    std::int64_t offset = 0, stride = 1;
    std::vector<std::size_t> order(rank);
    std::iota(order.begin(), order.end(), 0u);
    std::shuffle(order.begin(), order.end(), random);
    for (std::size_t d : order) {
      const int kind = static_cast<int>(random() % 4);
      from_strides[d] = kind == 0 ? 0 : kind == 1 ? -stride : stride;
      if (kind == 1) offset += (sizes[d] - 1) * stride;
      stride *= sizes[d] + static_cast<std::int64_t>(random() % 2);
    }
    std::vector<std::int32_t> from(static_cast<std::size_t>(stride) + 1);
    std::iota(from.begin(), from.end(), 0);
    const Sizes to_strides = row_major(sizes);
    const std::int64_t count = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
    std::vector<std::int32_t> to(static_cast<std::size_t>(count), -1);
    strided_copy(reinterpret_cast<std::byte*>(to.data()), to_strides, reinterpret_cast<const std::byte*>(from.data() + offset), from_strides, sizes, 4);
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t at = offset, rest = i;
      for (std::size_t d = 0; d < rank; ++d) {
        at += rest / to_strides[d] * from_strides[d];
        rest %= to_strides[d];
      }
      REQUIRE(to[static_cast<std::size_t>(i)] == from[static_cast<std::size_t>(at)]);
    }
  }
}

TEST_CASE("one long row is shared among threads", "[copy]") {
  std::vector<double> from(200001), to(100001);
  std::iota(from.begin(), from.end(), 0.0);
  strided_copy(reinterpret_cast<std::byte*>(to.data()), Sizes{1}, reinterpret_cast<const std::byte*>(from.data()), Sizes{2}, Sizes{100001}, 8);
  for (std::size_t i = 0; i < to.size(); ++i) REQUIRE(to[i] == static_cast<double>(2 * i));
}

TEST_CASE("layouts are told apart", "[copy]") {
  CHECK(extent_bytes(Sizes{2, 3}, Sizes{10, 1}, 4) == 52);
  CHECK(extent_bytes(Sizes{2, 0}, Sizes{10, 1}, 4) == 0);
  CHECK(extent_bytes(Sizes{}, Sizes{}, 8) == 8);
  CHECK(may_overlap_itself(Sizes{2, 3}, Sizes{0, 1}));
  CHECK(may_overlap_itself(Sizes{2, 3}, Sizes{1, 1}));
  CHECK_FALSE(may_overlap_itself(Sizes{2, 3}, Sizes{1, 2}));
  CHECK_FALSE(may_overlap_itself(Sizes{1, 3}, Sizes{0, -1}));
}
