// Functions of torch that do the same to each tensor of a list (`torch._foreach_add_`): recorded as the calls that they stand for.
#pragma once

#include <optional>

#include "python/foreign/foreign_names.h"
#include "python/recording/graph/recorded_graph.h"
#include "python/stand_ins/stand_in_uses.h"

namespace tenon::python {

/// Nothing for what is no call on lists, or not one that is known to be the same as calls on each. `uses`: takes these.
std::optional<Ref> record_each(const RecordedGraph& graph, StandInUses& uses, const ForeignFunction& function, PyObject* args, PyObject* kwargs);

}  // namespace tenon::python
