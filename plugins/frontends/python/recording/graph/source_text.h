// Where in the user's source an instruction comes from.
#pragma once

#include <Python.h>

#include "core/ir/graph.h"

namespace tenon::python {

/// File, line, function and stripped source line of the instruction at `byte_offset`. The text is empty where no source is found.
ir::Location source_location(PyCodeObject* code, int byte_offset);
/// The local variable to which the program gives what the instruction computes; empty where it goes elsewhere.
std::string variable_after(PyCodeObject* code, int byte_offset);

}  // namespace tenon::python
