#include <algorithm>
#include <cstring>

#include "core/abi/buffer_sections.h"
#include "fuzz/mutate.h"

namespace tenon::fuzz {
namespace {

std::size_t below(Random& random, std::size_t n) { return n == 0 ? 0 : random() % n; }

/// Where a section lies in the buffer, as far as its table can be believed.
struct Section {
  std::size_t offset = 0, count = 0, stride = 1;
};

/// The sections of one part; empty where the part does not fit into the buffer.
std::vector<Section> sections_of(const std::vector<std::uint8_t>& buffer, std::size_t part) {
  std::vector<Section> list;
  if (part + sizeof(TenonBufferHeader) > buffer.size()) return list;
  TenonBufferHeader header;
  std::memcpy(&header, buffer.data() + part, sizeof header);
  for (std::size_t i = 0; i < std::min<std::size_t>(header.section_count, 32); ++i) {
    const std::size_t at = part + header.header_size + i * sizeof(TenonBufferSection);
    if (at + sizeof(TenonBufferSection) > buffer.size()) break;
    TenonBufferSection s;
    std::memcpy(&s, buffer.data() + at, sizeof s);
    const std::uint64_t end = part + s.offset + std::uint64_t{s.count} * s.stride;
    if (end <= buffer.size() && s.stride != 0 && s.count != 0) list.push_back({part + s.offset, s.count, s.stride});
  }
  return list;
}

std::uint32_t part_size(const std::vector<std::uint8_t>& buffer) {
  TenonBufferHeader header{};
  if (buffer.size() >= sizeof header) std::memcpy(&header, buffer.data(), sizeof header);
  return header.part_size;
}

/// A word that is likely to be one too many, one too few, or none.
std::uint32_t telling_word(Random& random, std::uint32_t old, const std::vector<Section>& sections) {
  const auto limit = static_cast<std::uint32_t>(sections.empty() ? 0 : sections[below(random, sections.size())].count);
  switch (below(random, 10)) {
    case 0: return 0;
    case 1: return TENON_NONE;
    case 2: return old + 1;
    case 3: return old - 1;
    case 4: return limit;
    case 5: return limit - 1;
    case 6: return old ^ (1u << below(random, 32));
    case 7: return static_cast<std::uint32_t>(below(random, 12));
    case 8: return 0x80000000u;
    default: return static_cast<std::uint32_t>(random());
  }
}

void change_word(std::vector<std::uint8_t>& buffer, std::size_t at, const std::vector<Section>& sections, Random& random) {
  if (at + 4 > buffer.size()) return;
  std::uint32_t word;
  std::memcpy(&word, buffer.data() + at, 4);
  word = telling_word(random, word, sections);
  std::memcpy(buffer.data() + at, &word, 4);
}

void change_record(std::vector<std::uint8_t>& buffer, const std::vector<Section>& sections, Random& random) {
  if (sections.empty()) return;
  const Section& s = sections[below(random, sections.size())];
  const std::size_t record = s.offset + below(random, s.count) * s.stride;
  if (s.stride < 4) {
    buffer[record] = static_cast<std::uint8_t>(random());
    return;
  }
  const std::size_t field = below(random, s.stride / 4) * 4;
  if (below(random, 6) == 0) buffer[record + field + below(random, 4)] ^= static_cast<std::uint8_t>(1u << below(random, 8));
  else change_word(buffer, record + field, sections, random);
}

void swap_records(std::vector<std::uint8_t>& buffer, const std::vector<Section>& sections, Random& random) {
  if (sections.empty()) return;
  const Section& s = sections[below(random, sections.size())];
  const std::size_t a = s.offset + below(random, s.count) * s.stride, b = s.offset + below(random, s.count) * s.stride;
  if (a != b) std::swap_ranges(buffer.begin() + static_cast<std::ptrdiff_t>(a), buffer.begin() + static_cast<std::ptrdiff_t>(a + s.stride), buffer.begin() + static_cast<std::ptrdiff_t>(b));
}

void copy_record(std::vector<std::uint8_t>& buffer, const std::vector<std::uint8_t>& donor, std::size_t part, Random& random) {
  const auto to = sections_of(buffer, part), from = sections_of(donor, 0);
  if (to.empty() || from.empty()) return;
  const Section &t = to[below(random, to.size())], &f = from[below(random, from.size())];
  std::memcpy(buffer.data() + t.offset + below(random, t.count) * t.stride, donor.data() + f.offset + below(random, f.count) * f.stride, std::min(t.stride, f.stride));
}

void change_header(std::vector<std::uint8_t>& buffer, std::size_t part, const std::vector<Section>& sections, Random& random) {
  const std::size_t bytes = sizeof(TenonBufferHeader) + 15 * sizeof(TenonBufferSection);
  change_word(buffer, part + below(random, bytes / 4) * 4, sections, random);
}

}  // namespace

void mutate_buffer(std::vector<std::uint8_t>& buffer, const std::vector<std::uint8_t>& donor, Random& random) {
  for (std::size_t changes = 1 + below(random, 3); changes-- > 0;) {
    const std::size_t part = below(random, 4) == 0 && part_size(buffer) < buffer.size() ? part_size(buffer) : 0;
    const std::vector<Section> sections = sections_of(buffer, part);
    switch (below(random, 16)) {
      case 0: buffer.resize(below(random, buffer.size() + 1)); break;
      case 1: buffer.resize(buffer.size() + below(random, 65)); break;
      case 2:
        if (!buffer.empty()) buffer[below(random, buffer.size())] = static_cast<std::uint8_t>(random());
        break;
      case 3: change_header(buffer, part, sections, random); break;
      case 4: swap_records(buffer, sections, random); break;
      case 5: copy_record(buffer, donor, part, random); break;
      default: change_record(buffer, sections, random);
    }
  }
}

}  // namespace tenon::fuzz
