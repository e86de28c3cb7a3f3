// Strides that torch gives the result of an alias where neither its op nor torch's meta device says so.
#pragma once

#include <optional>
#include <string_view>

#include "core/ops/op.h"

namespace tenon::ops {

struct AliasLayout {
  ResultLayout layout;
  bool row_major_stays = false;  // an operand that is row-major, too, counts as that (one channel, channels last)
};

/// What torch's CPU kernels do. `made` is the node that gives the result. Nothing for aliases without a rule of their own.
std::optional<AliasLayout> layout_of_alias(std::string_view alias, const ir::Node& made);

}  // namespace tenon::ops
