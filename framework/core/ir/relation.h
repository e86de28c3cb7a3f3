// Comparisons of symbolic integers.
#pragma once

#include <cstdint>
#include <span>

#include "core/ir/dim.h"

namespace tenon::ir {

struct Relation {
  enum class Operator : std::uint8_t { equal, not_equal, less, less_equal, multiple_of };

  Operator op = Operator::equal;
  Dim left, right;
  friend bool operator==(const Relation&, const Relation&) = default;

  /// Whether it holds for values of the symbols. An overflow, or a multiple of 0, does not hold.
  bool holds(std::span<const std::int64_t> symbols) const;
};

/// Whether two expressions have the same value for all values of their symbols, as far as that is seen by what is left of each symbol when it is
/// divided by the constants that divide: floor_div(s0 + 1, 2) + floor_div(s0, 2) is s0.
bool are_always_equal(const Dim& a, const Dim& b);

}  // namespace tenon::ir
