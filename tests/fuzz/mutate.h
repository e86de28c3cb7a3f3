// Changes sound inputs into nearly sound ones.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace tenon::fuzz {

using Random = std::mt19937_64;

/// Changes a buffer: mostly fields of records and of the section table, to ids and counts at and around their limits; sometimes
/// plain bytes, or its length. `donor`: another buffer, whose records may be copied in.
void mutate_buffer(std::vector<std::uint8_t>& buffer, const std::vector<std::uint8_t>& donor, Random& random);

/// Changes a text: removes, repeats, swaps or replaces words, splices in words of `donor`; sometimes plain bytes.
void mutate_text(std::string& text, const std::string& donor, Random& random);

}  // namespace tenon::fuzz
