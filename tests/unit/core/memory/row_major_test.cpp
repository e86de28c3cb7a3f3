#include "core/memory/row_major.h"

#include <vector>

#include "catch.h"

using namespace tenon;

namespace {

using Sizes = std::vector<std::int64_t>;

TEST_CASE("row-major layouts are told from others", "[layout]") {
  CHECK(is_row_major(Sizes{2, 3}, Sizes{3, 1}));
  CHECK_FALSE(is_row_major(Sizes{2, 3}, Sizes{1, 2}));
  CHECK(is_row_major(Sizes{1, 3}, Sizes{77, 1}));
  CHECK(is_row_major(Sizes{0, 3}, Sizes{5, 9}));
  CHECK(is_row_major(Sizes{}, Sizes{}));
}

TEST_CASE("elements are copied in row-major order from any strides", "[layout]") {
  const std::vector<std::int16_t> data{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  const auto copied = [&](const Sizes& sizes, const Sizes& strides, std::size_t first = 0) {
    std::size_t count = 1;
    for (std::int64_t size : sizes) count *= static_cast<std::size_t>(size);
    std::vector<std::int16_t> to(count, -1);
    copy_to_row_major(to.data(), data.data() + first, sizes, strides, sizeof(std::int16_t));
    return to;
  };
  using Values = std::vector<std::int16_t>;
  CHECK(copied({2, 3}, {3, 1}) == Values{0, 1, 2, 3, 4, 5});
  CHECK(copied({3, 2}, {1, 3}) == Values{0, 3, 1, 4, 2, 5});
  CHECK(copied({2, 2, 2}, {1, 6, 2}) == Values{0, 2, 6, 8, 1, 3, 7, 9});
  CHECK(copied({3}, {-2}, 10) == Values{10, 8, 6});
  CHECK(copied({2, 2}, {0, 1}, 4) == Values{4, 5, 4, 5});
  CHECK(copied({}, {}, 7) == Values{7});
  CHECK(copied({2, 0, 3}, {5, 1, 1}).empty());
}

}  // namespace
