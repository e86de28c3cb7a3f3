#include "core/base/dtype.h"

#include <array>

namespace tenon {
namespace {

struct Row {
  std::string_view name;
  std::size_t bytes;
};

constexpr std::array<Row, kDTypeCount> kRows{{{"bool", 1},
                                              {"u8", 1},
                                              {"i8", 1},
                                              {"i16", 2},
                                              {"i32", 4},
                                              {"i64", 8},
                                              {"f16", 2},
                                              {"bf16", 2},
                                              {"f32", 4},
                                              {"f64", 8},
                                              {"c64", 8},
                                              {"c128", 16}}};

}  // namespace

std::size_t size_of(DType dtype) { return kRows[static_cast<std::size_t>(dtype)].bytes; }

std::string_view name_of(DType dtype) { return kRows[static_cast<std::size_t>(dtype)].name; }

std::optional<DType> dtype_named(std::string_view name) {
  for (std::size_t i = 0; i < kRows.size(); ++i)
    if (kRows[i].name == name) return static_cast<DType>(i);
  return std::nullopt;
}

}  // namespace tenon
