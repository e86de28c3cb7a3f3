// Turns a result into the template that builds it again.
#pragma once

#include "python/heap/heap.h"
#include "python/heap/result_template.h"

namespace tenon::python {

/// Describes `result` (and all that hangs on it) before the rollback. Breaks the graph when something in it cannot be built again.
ResultTemplate snapshot(Heap& heap, Recorder& recorder, PyObject* result);

}  // namespace tenon::python
