// Graphs to and from the flat buffer that crosses between host and plugins (abi/graph_buffer.h).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/abi/bytes.h"
#include "core/abi/dlpack.h"
#include "core/base/error.h"
#include "core/ir/graph.h"

namespace tenon::ir {

struct WriteOptions {
  /// Writes the debug part: names, locations, origins.
  bool debug = true;
  /// For each NodeId of the graph its id in the graph that this one was cut from (TENON_NONE for none); may be empty.
  std::span<const std::uint32_t> origins = {};
};

/// Writes a graph that the verifier accepts (ir/verifier.h). Symbols, constants, inputs and nodes keep the order they have in the
/// graph: symbol i of the buffer is SymbolId i, constant i is ConstantId i, node i is `graph.nodes()[i]`. Equal graphs, up to ids,
/// names and locations, give equal semantic parts. Constants travel beside the buffer: no byte of them is touched.
/// Throws (internal) for a graph that uses a value before it is defined, (unsupported) for one that does not fit into 4 GB.
std::vector<std::uint8_t> write_buffer(const Graph& graph, const WriteOptions& options = {});

/// Verifies a buffer and builds the graph. Node i of the buffer is NodeId i, value i is ValueId i, of the main graph; symbols and
/// constants likewise. `constants`: for each constant of the buffer the tensor, whose bytes the graph borrows; its dtype, shape and
/// layout (row-major) are checked. Without any, constants have types and no data.
/// The buffer must be aligned to 8 bytes; the graph does not refer to it afterwards.
Result<Graph> read_buffer(TenonBytes buffer, std::span<const DLTensor* const> constants = {});

inline TenonBytes bytes_of(const std::vector<std::uint8_t>& buffer) { return {buffer.data(), buffer.size()}; }

}  // namespace tenon::ir
