// Graphs as text (.tir). The parser (parser.h) is the inverse; docs/tir.md has the grammar.
#pragma once

#include <string>

#include "core/ir/graph.h"

namespace tenon::ir {

struct PrintOptions {
  /// Prints `@ "file":line "function" "code"` behind nodes that have a location.
  bool locations = true;
  /// Prints the elements of constants that have at most that many, where their bytes are at hand.
  std::size_t inline_constant_elements = 16;
};

/// A graph that the verifier accepts, as text that the parser reads back to the same graph.
std::string print_graph(const Graph& graph, const PrintOptions& options = {});

/// One node as in print_graph, without indentation and without line end (regions included). `symbols`: the outermost graph,
/// which names symbols and constants; by default `graph` itself.
std::string print_node(const Graph& graph, NodeId node, const PrintOptions& options = {}, const Graph* symbols = nullptr);

/// "f32[s0, 4]{4, 1} on device9:0". `graph` names the symbols.
std::string print_type(const Graph& graph, const Type& type);
std::string print_dim(const Graph& graph, const Dim& dim);
std::string print_attribute(const Graph& graph, const Attribute& value);
std::string print_literal(const Graph& graph, const Literal& value);

/// The shortest text that reads back to the same bits, always recognisable as a float: "2.0", "1e-05", "inf", "nan(0x7ff8000000000001)".
std::string print_float(double value);
/// A string in quotes, with escapes.
std::string print_string(std::string_view text);

}  // namespace tenon::ir
