// Where in the user's source an instruction comes from.
#pragma once

#include <Python.h>

#include "core/ir/graph.h"

namespace tenon::python {

/// File, line, function and stripped source line of the instruction at `byte_offset`. The text is empty where no source is found.
ir::Location source_location(PyCodeObject* code, int byte_offset);

}  // namespace tenon::python
