// Checks the debug part of a graph buffer: names, locations, origins.
#pragma once

#include <vector>

#include "core/abi/part_verifier.h"

namespace tenon::detail {

class DebugVerifier : public PartVerifier {
 public:
  DebugVerifier(TenonBytes bytes, const SemanticSections& semantic)
      : PartVerifier{bytes.data, bytes.size, kDebugSectionName, kDebugRecordSize, TENON_DEBUG_SECTION_COUNT, {}}, s_(semantic) {}

  bool check() {
    if (!check_header(TENON_BUFFER_DEBUG_MAGIC, "debug") || !check_sections() || !check_strings()) return false;
    if (header_of(part).part_size != available) return fail("debug header: bytes follow the debug part");
    const DebugSections d(part);
    const Table<TenonString>& strings = d.strings.strings;
    return check_names(d.value_names, TENON_DEBUG_VALUE_NAMES, s_.values.size(), strings) &&
           check_names(d.symbol_names, TENON_DEBUG_SYMBOL_NAMES, s_.symbols.size(), strings) &&
           check_names(d.constant_names, TENON_DEBUG_CONSTANT_NAMES, s_.constants.size(), strings) &&
           check_names(d.region_names, TENON_DEBUG_REGION_NAMES, s_.regions.size(), strings) && check_locations(d, strings.size()) &&
           check_table(d.node_locations, TENON_DEBUG_NODE_LOCATIONS, s_.nodes.size(), d.locations.size()) &&
           check_location_text(d) && check_table(d.node_origins, TENON_DEBUG_NODE_ORIGINS, s_.nodes.size(), TENON_NONE) &&
           check_hints(d.symbol_hints);
  }

 private:
  bool check_count(std::uint32_t entries, std::uint32_t section, std::uint32_t records) {
    if (entries == 0 || entries == records) return true;
    return fail(std::string("section ") + section_names[section] + ": " + std::to_string(entries) + " entries for " + std::to_string(records) + " records");
  }

  bool check_hints(const Table<std::int64_t>& hints) {
    if (!check_count(hints.size(), TENON_DEBUG_SYMBOL_HINTS, s_.symbols.size())) return false;
    for (std::uint32_t i = 0; i < hints.size(); ++i)
      if (hints[i] < -1) return fail(TENON_DEBUG_SYMBOL_HINTS, i, std::to_string(hints[i]) + " is negative");
    return true;
  }

  /// One entry a record or none at all, each below `limit` or absent.
  bool check_table(const Table<std::uint32_t>& table, std::uint32_t section, std::uint32_t records, std::uint32_t limit) {
    if (!check_count(table.size(), section, records)) return false;
    for (std::uint32_t i = 0; i < table.size(); ++i)
      if (table[i] >= limit && table[i] != TENON_NONE) return fail(section, i, std::to_string(table[i]) + " does not exist");
    return true;
  }

  bool check_names(const Table<std::uint32_t>& table, std::uint32_t section, std::uint32_t records, const Table<TenonString>& strings) {
    if (!check_table(table, section, records, strings.size())) return false;
    for (std::uint32_t i = 0; i < table.size(); ++i)
      if (!check_text(table[i], strings)) return fail(section, i, "the names are too long altogether");
    return true;
  }

  bool check_text(std::uint32_t string, const Table<TenonString>& strings) {
    if (string != TENON_NONE) text_ += strings[string].size;
    return text_ <= TENON_MAX_TEXT;
  }

  bool check_locations(const DebugSections& d, std::uint32_t strings) {
    for (std::uint32_t i = 0; i < d.locations.size(); ++i) {
      const TenonLocation& l = d.locations[i];
      for (std::uint32_t s : {l.file, l.function, l.code})
        if (s >= strings && s != TENON_NONE) return fail(TENON_DEBUG_LOCATIONS, i, "string " + std::to_string(s) + " does not exist");
      if (l.line > 0x7fffffffu) return fail(TENON_DEBUG_LOCATIONS, i, "line " + std::to_string(l.line) + " is too large");
    }
    return true;
  }

  bool check_location_text(const DebugSections& d) {
    std::vector<std::uint64_t> sizes(d.locations.size());
    for (std::uint32_t i = 0; i < d.locations.size(); ++i)
      for (std::uint32_t s : {d.locations[i].file, d.locations[i].function, d.locations[i].code})
        if (s != TENON_NONE) sizes[i] += d.strings.strings[s].size;
    for (std::uint32_t i = 0; i < d.node_locations.size(); ++i) {
      if (d.node_locations[i] == TENON_NONE) continue;
      text_ += sizes[d.node_locations[i]];
      if (text_ > TENON_MAX_TEXT) return fail(TENON_DEBUG_NODE_LOCATIONS, i, "the locations are too long altogether");
    }
    return true;
  }

  const SemanticSections& s_;
  std::uint64_t text_ = 0;  // bytes of names and locations so far
};

}  // namespace tenon::detail
