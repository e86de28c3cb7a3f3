// Graphs from text (.tir), the inverse of the printer. docs/tir.md has the grammar.
#pragma once

#include <string_view>

#include "core/base/error.h"
#include "core/ir/graph.h"

namespace tenon::ir {

/// Parses one graph. An error (malformed) begins with "line L, column C:" and says what was expected and what is there. The graph
/// satisfies the verifier. Constants that are written out own their bytes; others have none.
Result<Graph> parse_graph(std::string_view text);

}  // namespace tenon::ir
