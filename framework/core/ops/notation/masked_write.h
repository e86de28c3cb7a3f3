// x[…, mask, …] = v as a choice among elements: nothing of it has a size that depends on data.
#pragma once

#include <optional>

#include "core/ops/notation/move.h"

namespace tenon::ops {

/// The new elements of `self` where `mask` is true along the dimensions from `at` on, elsewhere the old ones. The value, of self's dtype,
/// broadcasts to self[…, mask, …], whose dimension `at` counts the true places. Where the value has an element for each of these, a wrong
/// number of them fails the call. Nothing where this cannot be said without the count.
std::optional<ir::ValueId> masked_write(ForeignArguments& a, ir::ValueId self, ir::ValueId mask, std::size_t at, ir::ValueId value, bool accumulate);

}  // namespace tenon::ops
