// Strides that torch gives the result of an alias where neither its op nor torch's meta device says so.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/ops/op.h"

namespace tenon::ops {

struct AliasLayout {
  ResultLayout layout;
  bool row_major_stays = false;  // an operand that is row-major, too, counts as that (one channel, channels last)
  bool copies = false;           // as a copy of the operand: dense strides stay as they are
  bool broadcasts = false;       // a copy: of an operand of fewer elements than the result, row-major
};

/// What torch's CPU kernels do. `made` is the node that gives the result, of that shape; `number_first`: its first operand is a number. Nothing for
/// aliases without a rule of their own.
std::optional<AliasLayout> layout_of_alias(std::string_view alias, const ir::Node& made, std::span<const ir::Dim> shape, bool number_first = false);

/// How often torch writes into a result that it has made, which the result's version tells. `has_elements`: whether the result does.
std::uint32_t writes_of_alias(std::string_view alias, bool has_elements);

/// Whether torch computes with the two operands of an alias in the other order, in which the first has the first say about strides.
bool operands_are_swapped(std::string_view alias);

/// Whether torch makes a 0-d tensor of a number among the operands of the pointwise op that `made` is: that one has a say in the result's
/// strides.
bool numbers_are_operands(std::string_view alias, const ir::Node& made);

}  // namespace tenon::ops
