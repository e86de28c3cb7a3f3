// What is attacked: each target takes any bytes, and ends the process if what reads them breaks a promise.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/ir/graph.h"
#include "fuzz/mutate.h"

namespace tenon::fuzz {

enum class Verdict : std::uint8_t { refused, accepted };

/// Verifies a buffer. If it is accepted: reads all of it through GraphView, builds the graph, and checks that writing and reading
/// that graph again, as buffer and as text, changes nothing; then checks its types.
Verdict attack_buffer(std::span<const std::uint8_t> bytes);

/// Parses a text. If it is accepted: printing and parsing again changes nothing, the graph's buffer is sound, and its types are checked. A
/// refusal names line and column.
Verdict attack_text(std::string_view text);

/// Checks the types of a graph; if they are accepted, sends it on the trips and runs it on the reference where its sizes are small. `ran`
/// becomes true where the run came to an end, whether it gave results or an error.
Verdict attack_types(const ir::Graph& graph, Random& random, bool& ran);

}  // namespace tenon::fuzz
