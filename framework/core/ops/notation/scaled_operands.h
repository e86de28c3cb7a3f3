// Operands that torch scales by a number before it adds them: `alpha` of sums and differences, `value` of addcmul and addcdiv.
#pragma once

#include <string>

#include "core/ops/notation/family.h"

namespace tenon::ops {

/// self `op` (alpha * other), where `op` is add or sub; of floats in one rounding.
Adapt alpha_of(std::string op);
/// self + (value * tensor1) `combine` tensor2: one op, unless only the running program knows the value.
Adapt scaled_by_value(std::string op, std::string combine, Promotion promotion);

}  // namespace tenon::ops
