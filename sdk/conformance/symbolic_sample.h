// A sample with symbols for its sizes.
#pragma once

#include <optional>
#include <vector>

#include "core/ops/reference/sample.h"

namespace tenon::conformance {

struct SymbolicSample {
  ir::Graph graph;
  std::vector<ops::Sample> sizes;  // the sample itself, and the same with other sizes; the definitions take each of them
};

/// The graph of the sample with a symbol for every size above 1; equal sizes share a symbol. Nothing for a sample with strides, without
/// such sizes, or whose op or attributes want constants there.
std::optional<SymbolicSample> with_symbols(const ops::Op& op, const ops::Sample& sample);

}  // namespace tenon::conformance
