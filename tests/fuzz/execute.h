// Runs graphs that were accepted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/ir/graph.h"
#include "core/ops/reference/reference.h"
#include "fuzz/mutate.h"

namespace tenon::fuzz {

/// Values for the symbols of a graph that was accepted if these are not negative, within their ranges and small: -1 for sizes that depend on
/// data. Nothing where those chosen do not fit, or where a type becomes too large to run with them.
std::optional<std::vector<std::int64_t>> sizes_to_run(const ir::Graph& graph, const std::vector<ir::Dim>& not_negative, Random& random);

/// Memory for one input: exactly the bytes between its first and its last element.
struct InputMemory {
  std::vector<std::byte> bytes;
  std::size_t first = 0;  // byte of the first element
  std::vector<std::int64_t> shape, strides;
  DType dtype = DType::f32;
};
InputMemory input_of(const ir::Type& type, const std::vector<std::int64_t>& symbols, Random& random);

/// Runs a graph on the reference, node by node. Words of what it says against that; empty when it ran.
std::string run_on_reference(const ir::Graph& graph, const std::vector<std::int64_t>& symbols, Random& random);

}  // namespace tenon::fuzz
