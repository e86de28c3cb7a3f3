// Exported programs on disk: a graph, its constants, and what the driver that wrote it says of arguments and results.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/abi/plugin.h"
#include "core/ir/graph.h"

namespace tenon::host {

/// The ending of such files, with the dot.
inline constexpr const char* kExportedSuffix = ".tnx";

struct ExportedProgram {
  ir::Graph graph;                                      // borrows the bytes of its constants
  std::vector<std::shared_ptr<const void>> constants;  // what keeps them alive
  std::string signature;                                // a JSON object of the driver's
};

/// Writes a file. Throws (malformed) for a graph that the verifier refuses, (invalid_argument) for a signature that is no JSON object,
/// (unsupported) for an op that the catalogue does not know or that runs foreign code: its meaning would not travel.
void save_program(const TenonGraph& graph, const std::string& signature, const std::string& path);

/// Reads a file. Throws what Container::read throws; (malformed) names the section that makes no sense.
ExportedProgram load_program(const std::string& path);

}  // namespace tenon::host
