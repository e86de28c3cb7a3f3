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

}  // namespace tenon::ir
