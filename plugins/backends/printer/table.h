// A graph as a table for people.
#pragma once

#include <string>

#include "core/ir/graph.h"

namespace tenon::printer {

/// One line a value: opcode (placeholder, constant, call, output), name, target, arguments, attributes, type.
std::string table_of(const ir::Graph& graph);

}  // namespace tenon::printer
