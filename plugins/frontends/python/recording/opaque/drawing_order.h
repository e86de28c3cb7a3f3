// In which order torch draws random numbers: as the elements lie in memory.
#pragma once

#include "python/foreign/foreign_names.h"
#include "python/metadata/strides.h"
#include "python/stand_ins/stand_ins.h"

namespace tenon::python {

/// The order of an operand of a call that draws; empty for row-major. `written`: the call writes it.
MemoryOrder drawing_order(const StandIn& operand, bool written, const ForeignFunction& function);
/// Whether a call has a generator of its own.
bool names_a_generator(PyObject* kwargs);

}  // namespace tenon::python
