// Exported programs (.tnx) under attack: files of which sections, sizes and names are wrong, with checksums that are right.
#pragma once

#include <string>
#include <vector>

#include "core/ir/graph.h"
#include "fuzz/mutate.h"
#include "fuzz/targets.h"

namespace tenon::fuzz {

/// The bytes of a file that holds the graph, its constants at random, or a mutant of it: sections are changed, left out, repeated or
/// renamed, and so are the fields of header and table; checksums are mended most often. `donor`: another graph's buffer.
std::vector<std::uint8_t> container_of(const ir::Graph& graph, const std::vector<std::uint8_t>& donor, Random& random, bool sound = false);

/// Loads a file of these bytes. If it is accepted: all bytes of its constants are read, what a driver accepts of it is written and loaded again
/// as the same program, and runs on the reference where its sizes are small. A refusal names the file.
Verdict attack_container(const std::vector<std::uint8_t>& bytes, Random& random);

}  // namespace tenon::fuzz
