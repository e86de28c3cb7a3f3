// What is attacked: each target takes any bytes, and ends the process if what reads them breaks a promise.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace tenon::fuzz {

enum class Verdict : std::uint8_t { refused, accepted };

/// Verifies a buffer. If it is accepted: reads all of it through GraphView, builds the graph, and checks that writing and reading
/// that graph again, as buffer and as text, changes nothing.
Verdict attack_buffer(std::span<const std::uint8_t> bytes);

/// Parses a text. If it is accepted: printing and parsing again changes nothing, and the graph's buffer is sound. A refusal names
/// line and column.
Verdict attack_text(std::string_view text);

}  // namespace tenon::fuzz
