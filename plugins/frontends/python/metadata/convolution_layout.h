// Where the results of torch's convolutions lie, and of other calls that keep the memory format of their operands.
#pragma once

#include <span>

#include "core/ir/graph.h"
#include "python/metadata/strides.h"

namespace tenon::python {

/// The strides of the result of such a call (ResultLayout::memory_format) on these operands. Breaks the graph where the processor decides.
Extents strides_in_memory_format(const ir::Graph& graph, ir::ValueId result, std::span<const std::int64_t> shape, std::span<const Operand> operands);

}  // namespace tenon::python
