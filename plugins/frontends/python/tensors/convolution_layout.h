// Where torch's convolutions lie.
#pragma once

#include <span>

#include "core/ir/graph.h"
#include "python/tensors/strides.h"

namespace tenon::python {

/// Whether the result of a call in three dimensions has the memory format of its operands: a convolution has it where torch gives it to
/// oneDNN, as it does on several threads (aten/src/ATen/native/Convolution.cpp, use_mkldnn). Breaks the graph for half floats, for which the
/// processor decides.
bool keeps_memory_format(const ir::Graph& graph, ir::ValueId result, std::span<const Operand> operands);

}  // namespace tenon::python
