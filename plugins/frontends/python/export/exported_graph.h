// `_tenon.ExportedGraph`: a whole graph away from the program it was captured of, to save, load and run.
#pragma once

#include <Python.h>

#include "core/ir/graph.h"
#include "python/objects/ref.h"

namespace tenon::python {

/// Wraps a graph whose inputs are the arguments of the exported call.
Ref make_exported_graph(ir::Graph graph);

/// Reads a .tnx file. Empty with an exception set when that fails.
Ref load_exported_graph(const char* path);

/// Adds the type to the module. False with an exception set when that fails.
bool add_exported_graph_type(PyObject* module);

}  // namespace tenon::python
