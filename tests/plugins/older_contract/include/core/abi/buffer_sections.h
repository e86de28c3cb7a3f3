// Finds the sections of a graph buffer. Checks nothing: see buffer_verifier.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/abi/buffer_layout.h"
#include "core/abi/bytes.h"

namespace tenon::detail {

/// The records of one section, read in place with the writer's stride.
template <class Record>
class Table {
 public:
  Table() = default;
  Table(const std::uint8_t* part, const TenonBufferSection& section)
      : base_(part + section.offset), stride_(section.stride), count_(section.count) {}

  const Record& operator[](std::uint32_t i) const { return *reinterpret_cast<const Record*>(base_ + std::size_t{i} * stride_); }
  std::uint32_t size() const { return count_; }
  std::uint32_t stride() const { return stride_; }

 private:
  const std::uint8_t* base_ = nullptr;
  std::uint32_t stride_ = 0;
  std::uint32_t count_ = 0;
};

inline const TenonBufferHeader& header_of(const std::uint8_t* part) { return *reinterpret_cast<const TenonBufferHeader*>(part); }

inline const TenonBufferSection* section_table(const std::uint8_t* part) {
  return reinterpret_cast<const TenonBufferSection*>(part + header_of(part).header_size);
}

/// Strings of one part.
struct StringTable {
  const char* text = nullptr;
  Table<TenonString> strings;

  /// The string, ended by a NUL; empty for TENON_NONE.
  std::string_view operator[](std::uint32_t i) const {
    if (i == TENON_NONE) return {};
    const TenonString& s = strings[i];
    return {text + s.offset, s.size};
  }
};

struct SemanticSections {
  StringTable strings;
  Table<TenonSymbol> symbols;
  Table<TenonExpression> expressions;
  Table<TenonDim> dims;
  Table<TenonType> types;
  Table<TenonConstant> constants;
  Table<TenonRegion> regions;
  Table<TenonNode> nodes;
  Table<TenonValue> values;
  Table<TenonLiteral> literals;
  Table<std::uint32_t> operands;
  Table<TenonOutput> outputs;
  Table<TenonAttribute> attributes;
  Table<TenonDim> items;

  SemanticSections() = default;
  explicit SemanticSections(const std::uint8_t* part) {
    const TenonBufferSection* s = section_table(part);
    strings = {reinterpret_cast<const char*>(part + s[TENON_SECTION_TEXT].offset), {part, s[TENON_SECTION_STRINGS]}};
    symbols = {part, s[TENON_SECTION_SYMBOLS]};
    expressions = {part, s[TENON_SECTION_EXPRESSIONS]};
    dims = {part, s[TENON_SECTION_DIMS]};
    types = {part, s[TENON_SECTION_TYPES]};
    constants = {part, s[TENON_SECTION_CONSTANTS]};
    regions = {part, s[TENON_SECTION_REGIONS]};
    nodes = {part, s[TENON_SECTION_NODES]};
    values = {part, s[TENON_SECTION_VALUES]};
    literals = {part, s[TENON_SECTION_LITERALS]};
    operands = {part, s[TENON_SECTION_OPERANDS]};
    outputs = {part, s[TENON_SECTION_OUTPUTS]};
    attributes = {part, s[TENON_SECTION_ATTRIBUTES]};
    items = {part, s[TENON_SECTION_ITEMS]};
  }
};

/// All tables are empty when the buffer has no debug part.
struct DebugSections {
  StringTable strings;
  Table<std::uint32_t> value_names;
  Table<std::uint32_t> symbol_names;
  Table<std::uint32_t> constant_names;
  Table<std::uint32_t> region_names;
  Table<TenonLocation> locations;
  Table<std::uint32_t> node_locations;
  Table<std::uint32_t> node_origins;
  Table<std::int64_t> symbol_hints;

  DebugSections() = default;
  explicit DebugSections(const std::uint8_t* part) {
    const TenonBufferSection* s = section_table(part);
    strings = {reinterpret_cast<const char*>(part + s[TENON_DEBUG_TEXT].offset), {part, s[TENON_DEBUG_STRINGS]}};
    value_names = {part, s[TENON_DEBUG_VALUE_NAMES]};
    symbol_names = {part, s[TENON_DEBUG_SYMBOL_NAMES]};
    constant_names = {part, s[TENON_DEBUG_CONSTANT_NAMES]};
    region_names = {part, s[TENON_DEBUG_REGION_NAMES]};
    locations = {part, s[TENON_DEBUG_LOCATIONS]};
    node_locations = {part, s[TENON_DEBUG_NODE_LOCATIONS]};
    node_origins = {part, s[TENON_DEBUG_NODE_ORIGINS]};
    symbol_hints = {part, s[TENON_DEBUG_SYMBOL_HINTS]};
  }

  /// The name that a per-record table gives to record i; empty for none.
  std::string_view name(const Table<std::uint32_t>& table, std::uint32_t i) const {
    return i < table.size() ? strings[table[i]] : std::string_view{};
  }
};

}  // namespace tenon::detail
