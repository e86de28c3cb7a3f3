// Errors of NumPy's arithmetic of which no floating-point flag speaks.
#pragma once

#include <optional>

#include "core/ir/graph.h"
#include "python/library/error_handling.h"

namespace tenon::python {

/// Adds nodes to a graph of NumPy operations that find such errors: integer division by zero, a float that no integer of a cast's dtype
/// holds, a logarithm of zero or of a negative number in less than 64 bits, infinities and NaNs in what nothing reads. Gives a bool[]
/// that is true when there may have been one; nothing when there can be none. It may be true without need: the call then runs plainly.
/// Where some nodes ignore a kind of error, its flag says nothing: nodes that do not are watched by what they give.
std::optional<ir::ValueId> add_error_alarm(ir::Graph& graph, const ErrorHandlings& handlings);

/// The kinds of error that the graph may meet, by a floating-point flag or by an alarm. It may name more than need be.
struct MetErrors {
  FloatErrors ignored;  // by some nodes
  FloatErrors heard;    // by some nodes, whatever the calling context does
  bool any = false;     // of which somebody may speak
};
MetErrors errors_that_may_be_met(const ir::Graph& graph, const ErrorHandlings& handlings);

}  // namespace tenon::python
