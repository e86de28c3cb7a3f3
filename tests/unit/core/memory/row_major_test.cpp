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

}  // namespace
