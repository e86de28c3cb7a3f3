// Errors of NumPy's arithmetic of which no floating-point flag speaks.
#pragma once

#include <optional>

#include "core/ir/graph.h"

namespace tenon::python {

/// Adds nodes to a graph of NumPy operations that find such errors: integer division by zero, a float that no integer of a cast's dtype
/// holds, a logarithm of zero or of a negative number in less than 64 bits, infinities and NaNs in what nothing reads. Gives a bool[]
/// that is true when there may have been one; nothing when there can be none. It may be true without need: the call then runs plainly.
std::optional<ir::ValueId> add_error_alarm(ir::Graph& graph);

/// Whether the graph may meet an error of which NumPy warns, by a floating-point flag or by an alarm. It may say yes without need.
bool may_meet_errors(const ir::Graph& graph);

}  // namespace tenon::python
