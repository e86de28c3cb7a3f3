// The inputs of a run: from files, or random, with sizes for the graph's symbols.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "array.h"
#include "core/ir/graph.h"

namespace tenon::cli {

/// What the command line says about inputs.
struct GivenInputs {
  std::map<std::string, std::string> files;   // name of an input → .npy file
  std::map<std::string, std::int64_t> sizes;  // name of a symbol → value
  std::uint64_t seed = 0;
};

/// "NAME=VALUE" → {NAME, VALUE}. Throws CommandError (bad usage).
std::pair<std::string, std::string> split_assignment(const std::string& option, const std::string& text);

/// Makes one array for each input of the graph: from its file, else random in the shape that its type says. A symbol has the given
/// size, or the size that a file shows. Throws CommandError (bad usage) for unknown names and sizes that nothing tells.
std::vector<Array> make_inputs(const ir::Graph& graph, const GivenInputs& given);

}  // namespace tenon::cli
