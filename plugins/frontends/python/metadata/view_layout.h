// Where the elements of a view lie in the memory that it views, as expressions over symbols.
#pragma once

#include <optional>

#include "core/ir/graph.h"

namespace tenon::python {

/// In elements; the offset counts from the first element of what is viewed.
struct ViewLayout {
  ir::Shape strides;
  ir::Dim offset;
};

/// The layout of `value`, which the graph makes out of `base` by moving elements only, where `base` has the given strides. Nothing when
/// the elements do not lie at constant steps, or when that cannot be seen.
std::optional<ViewLayout> layout_of_view(const ir::Graph& graph, ir::ValueId base, const ir::Shape& base_strides, ir::ValueId value);

/// Gives dimensions of size 1 of a view the stride that the library gives them, where that is another one: what a step past the dimensions
/// further in would be, that of another dimension where it is the same for all sizes, and 1 for the last one. `found` are the layout's strides in the call that is captured, `present` the library's.
void settle_unit_strides(ViewLayout& layout, const ir::Shape& shape, std::span<const std::int64_t> found, std::span<const std::int64_t> present);

}  // namespace tenon::python
