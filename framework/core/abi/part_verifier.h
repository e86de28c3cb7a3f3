// Checks what the two parts of a graph buffer have in common: header, section table, strings.
#pragma once

#include <string>

#include "core/abi/buffer_sections.h"

namespace tenon::detail {

/// One part of a buffer under verification. Every check returns false after it has said why in `error`.
struct PartVerifier {
  const std::uint8_t* part = nullptr;
  std::uint64_t available = 0;  // bytes from `part` to the end of the buffer
  const char* const* section_names = nullptr;
  const std::uint32_t* record_sizes = nullptr;
  std::uint32_t known_sections = 0;
  std::string error;

  bool fail(std::string text) {
    error = std::move(text);
    return false;
  }

  bool fail(std::uint32_t section, std::uint32_t record, const std::string& text) {
    return fail(std::string(section_names[section]) + "[" + std::to_string(record) + "]: " + text);
  }

  bool check_header(std::uint64_t magic, const char* name) {
    const std::string header = std::string(name) + " header: ";
    if (reinterpret_cast<std::uintptr_t>(part) % 8 != 0) return fail(header + "the buffer is not aligned to 8 bytes");
    if (available < sizeof(TenonBufferHeader)) return fail(header + "the buffer ends after " + std::to_string(available) + " bytes");
    const TenonBufferHeader& h = header_of(part);
    if (h.magic != magic) return fail(header + "this is no graph buffer (wrong magic number)");
    if (h.schema != TENON_BUFFER_SCHEMA)
      return fail(header + "schema " + std::to_string(h.schema) + " is unknown; this reader knows " + std::to_string(TENON_BUFFER_SCHEMA));
    if (h.header_size < sizeof(TenonBufferHeader) || h.header_size % 8 != 0)
      return fail(header + "header size " + std::to_string(h.header_size) + " is not allowed");
    if (h.part_size > available || h.part_size % 8 != 0)
      return fail(header + "the part says " + std::to_string(h.part_size) + " bytes, there are " + std::to_string(available));
    if (h.section_count < known_sections)
      return fail(header + std::to_string(h.section_count) + " sections where there must be " + std::to_string(known_sections));
    if (h.header_size + std::uint64_t{h.section_count} * sizeof(TenonBufferSection) > h.part_size)
      return fail(header + "the section table does not fit into the part");
    return true;
  }

  /// Sections lie within the part, one after the other, aligned, with records that are large enough.
  bool check_sections() {
    const TenonBufferHeader& h = header_of(part);
    const TenonBufferSection* table = section_table(part);
    std::uint64_t end = h.header_size + std::uint64_t{h.section_count} * sizeof(TenonBufferSection);
    for (std::uint32_t i = 0; i < h.section_count; ++i) {
      const TenonBufferSection& s = table[i];
      const std::string name = "section " + (i < known_sections ? std::string(section_names[i]) : std::to_string(i));
      const std::uint32_t least = i < known_sections ? record_sizes[i] : 1;
      if (s.stride < least || (least > 1 && s.stride % (least % 8 == 0 ? 8 : 4) != 0) || (i == 0 && s.stride != 1))
        return fail(name + ": a stride of " + std::to_string(s.stride) + " is not allowed");
      if (s.offset % 8 != 0 || s.offset < end) return fail(name + ": offset " + std::to_string(s.offset) + " is not allowed");
      end = s.offset + std::uint64_t{s.count} * s.stride;
      if (end > h.part_size) return fail(name + ": it ends at byte " + std::to_string(end) + " of " + std::to_string(h.part_size));
    }
    return true;
  }

  /// Strings follow each other in the text and are each ended by a NUL.
  bool check_strings() {
    const TenonBufferSection* table = section_table(part);
    const char* text = reinterpret_cast<const char*>(part + table[0].offset);
    const Table<TenonString> strings(part, table[1]);
    std::uint64_t next = 0;
    for (std::uint32_t i = 0; i < strings.size(); ++i) {
      const TenonString& s = strings[i];
      const std::uint64_t end = std::uint64_t{s.offset} + s.size;
      if (s.offset != next || end >= table[0].count || text[end] != 0)
        return fail(1, i, "offset " + std::to_string(s.offset) + " with " + std::to_string(s.size) + " bytes is not a string of the text section");
      next = end + 1;
    }
    return next == table[0].count || fail(std::string(section_names[0]) + ": not all of it is used");
  }
};

}  // namespace tenon::detail
