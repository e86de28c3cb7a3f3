// Makes the results of a call that share memory with its inputs or with other results.
#pragma once

#include <cstdint>
#include <span>

#include "python/graph/captured_graph.h"
#include "python/objects/ref.h"

namespace tenon::python {

/// A view of `viewed`, in the layout of the output at these values of the graph's symbols. `through`: the view that it is made of, or `viewed`. Throws
/// PythonError.
Ref view_for(const TensorOutput& output, PyObject* viewed, PyObject* through, std::span<const std::int64_t> symbols);

}  // namespace tenon::python
