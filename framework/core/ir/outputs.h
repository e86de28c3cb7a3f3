// The values that a graph gives.
#pragma once

#include <vector>

#include "core/ir/graph.h"

namespace tenon::ir {

/// Which values are outputs, indexed by ValueId.
inline std::vector<bool> output_values(const Graph& graph) {
  std::vector<bool> given(graph.value_capacity(), false);
  for (const Output& output : graph.outputs()) given[output.value.value] = true;
  return given;
}

}  // namespace tenon::ir
