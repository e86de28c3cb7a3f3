// An input whose size may vary from call to call: its type in the graph, and what of its metadata is checked against what.
#pragma once

#include "core/ir/type.h"
#include "python/guards/source.h"
#include "python/metadata/strides.h"
#include "python/metadata/tensor_spec.h"
#include "python/symbols/symbols.h"

namespace tenon::python {

/// Dimensions of which the program has said whether they vary (torch._dynamo.mark_dynamic, mark_static), as bits.
struct SizeMarks {
  std::uint32_t varying = 0, constant = 0;
};
/// What a tensor is marked with. Only asked where the program has imported torch._dynamo.
SizeMarks size_marks(PyObject* tensor);

/// The type of an input in the graph. Extents and strides that vary become symbols, and are marked in `spec`. A stride that is the product
/// of the extents further in stays that product; another one that varies is a symbol of its own, except in row-major order, which is a
/// variant by itself. `from_the_start`: see Symbols::number.
ir::Type type_of_input(TensorSpec& spec, const std::string& name, SourceId source, Symbols& symbols, bool from_the_start, const SizeMarks& marks = {});

/// Guards in which order a tensor lies, as far as numbers that vary decide it: how the library lays out what it makes of a tensor hangs on that.
/// `known`: the strides of this call.
void settle_order(Symbols& symbols, const ir::Shape& shape, const ir::Shape& strides, std::span<const std::int64_t> known);
/// The same of where it has gaps: whether the library copies it or gives a view, or says that it is contiguous, hangs on that, too.
void settle_gaps(Symbols& symbols, const ir::Shape& shape, const ir::Shape& strides, std::span<const std::int64_t> known);
/// Strides with which it may lie as far as that would guard it, for the sizes of this call: with and without each gap that numbers decide. Empty where
/// they are many, or its dimensions lie in another order, or within each other.
std::vector<Extents> ways_to_lie(const ir::Shape& shape, const ir::Shape& strides, std::span<const std::int64_t> sizes, std::span<const std::int64_t> known);

}  // namespace tenon::python
