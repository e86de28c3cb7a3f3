// Lists of names that a caller of the C API hands over.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace tenon::host {

/// Copies; no list is none. Throws (invalid_argument) for a name that is null.
inline std::vector<std::string> given_names(const char* const* names, std::size_t count, const char* what) {
  std::vector<std::string> copies;
  for (std::size_t i = 0; names && i < count; ++i) {
    TENON_USER_CHECK(names[i], "name {} of {} {} is null", i, count, what);
    copies.emplace_back(names[i]);
  }
  return copies;
}

}  // namespace tenon::host
