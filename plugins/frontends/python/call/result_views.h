// Makes the results of a call that share memory with its inputs or with other results.
#pragma once

#include <cstdint>
#include <span>

#include "python/graph/captured_graph.h"
#include "python/objects/ref.h"

namespace tenon::python {

/// A view of `base`, in the layout of the output at these values of the graph's symbols. Throws PythonError.
Ref view_for(const TensorOutput& output, PyObject* base, std::span<const std::int64_t> symbols);

}  // namespace tenon::python
