// Locks the layout of the graph buffer: a change of any size or offset below breaks plugins that are already built.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "core/abi/graph_buffer.h"
#include "core/base/dtype.h"

namespace tenon::detail {

static_assert(std::endian::native == std::endian::little, "graph buffers are little-endian and read in place");

#define TENON_LOCK_SIZE(record, bytes) \
  static_assert(sizeof(record) == (bytes) && alignof(record) <= 8 && std::is_trivially_copyable_v<record>)
#define TENON_LOCK(record, field, bytes) static_assert(offsetof(record, field) == (bytes))

TENON_LOCK_SIZE(TenonBufferHeader, 24);
TENON_LOCK(TenonBufferHeader, schema, 8);
TENON_LOCK(TenonBufferHeader, header_size, 12);
TENON_LOCK(TenonBufferHeader, part_size, 16);
TENON_LOCK(TenonBufferHeader, section_count, 20);

TENON_LOCK_SIZE(TenonBufferSection, 16);
TENON_LOCK(TenonBufferSection, count, 4);
TENON_LOCK(TenonBufferSection, stride, 8);

TENON_LOCK_SIZE(TenonString, 8);
TENON_LOCK(TenonString, size, 4);

TENON_LOCK_SIZE(TenonSymbol, 16);
TENON_LOCK(TenonSymbol, max, 8);

TENON_LOCK_SIZE(TenonExpression, 24);
TENON_LOCK(TenonExpression, a, 4);
TENON_LOCK(TenonExpression, b, 8);
TENON_LOCK(TenonExpression, value, 16);

TENON_LOCK_SIZE(TenonDim, 16);
TENON_LOCK(TenonDim, expression, 8);

TENON_LOCK_SIZE(TenonType, 16);
TENON_LOCK(TenonType, dtype, 1);
TENON_LOCK(TenonType, device_kind, 2);
TENON_LOCK(TenonType, has_strides, 3);
TENON_LOCK(TenonType, device_index, 4);
TENON_LOCK(TenonType, first_dim, 8);
TENON_LOCK(TenonType, rank, 12);

TENON_LOCK_SIZE(TenonConstant, 8);

TENON_LOCK_SIZE(TenonRegion, 40);
TENON_LOCK(TenonRegion, first_node, 4);
TENON_LOCK(TenonRegion, node_count, 8);
TENON_LOCK(TenonRegion, first_value, 12);
TENON_LOCK(TenonRegion, input_count, 16);
TENON_LOCK(TenonRegion, result_count, 20);
TENON_LOCK(TenonRegion, literal_count, 24);
TENON_LOCK(TenonRegion, first_output, 28);
TENON_LOCK(TenonRegion, output_count, 32);

TENON_LOCK_SIZE(TenonNode, 40);
TENON_LOCK(TenonNode, region, 4);
TENON_LOCK(TenonNode, first_operand, 8);
TENON_LOCK(TenonNode, operand_count, 12);
TENON_LOCK(TenonNode, first_attribute, 16);
TENON_LOCK(TenonNode, attribute_count, 20);
TENON_LOCK(TenonNode, first_result, 24);
TENON_LOCK(TenonNode, result_count, 28);
TENON_LOCK(TenonNode, first_region, 32);
TENON_LOCK(TenonNode, region_count, 36);

TENON_LOCK_SIZE(TenonValue, 16);
TENON_LOCK(TenonValue, type, 4);
TENON_LOCK(TenonValue, node, 8);
TENON_LOCK(TenonValue, index, 12);

TENON_LOCK_SIZE(TenonLiteral, 16);
TENON_LOCK(TenonLiteral, expression, 4);
TENON_LOCK(TenonLiteral, bits, 8);

TENON_LOCK_SIZE(TenonOutput, 16);
TENON_LOCK(TenonOutput, kind, 4);
TENON_LOCK(TenonOutput, target, 8);

TENON_LOCK_SIZE(TenonAttribute, 24);
TENON_LOCK(TenonAttribute, kind, 4);
TENON_LOCK(TenonAttribute, ref, 8);
TENON_LOCK(TenonAttribute, count, 12);
TENON_LOCK(TenonAttribute, bits, 16);

TENON_LOCK_SIZE(TenonLocation, 16);
TENON_LOCK(TenonLocation, line, 4);
TENON_LOCK(TenonLocation, function, 8);
TENON_LOCK(TenonLocation, code, 12);

#undef TENON_LOCK
#undef TENON_LOCK_SIZE

// Sections are only ever appended, kinds never renumbered.
static_assert(TENON_SECTION_TEXT == 0 && TENON_SECTION_TYPES == 5 && TENON_SECTION_NODES == 8 && TENON_SECTION_ITEMS == 14);
static_assert(TENON_DEBUG_TEXT == 0 && TENON_DEBUG_LOCATIONS == 6 && TENON_DEBUG_NODE_ORIGINS == 8 && TENON_DEBUG_SYMBOL_HINTS == 9);
static_assert(TENON_EXPRESSION_MAX == 7 && TENON_ATTRIBUTE_FLOATS == 7 && TENON_LITERAL_FLOAT == 2 && TENON_OUTPUT_SAVED == 2);
static_assert(TENON_DTYPES == kDTypeCount && TENON_F32 == static_cast<int>(DType::f32) && TENON_C128 == static_cast<int>(DType::c128));

/// Bytes of one record of each section, as this schema has them.
inline constexpr std::uint32_t kRecordSize[TENON_SECTION_COUNT] = {
    1,  sizeof(TenonString), sizeof(TenonSymbol),  sizeof(TenonExpression), sizeof(TenonDim), sizeof(TenonType),   sizeof(TenonConstant), sizeof(TenonRegion),
    sizeof(TenonNode), sizeof(TenonValue), sizeof(TenonLiteral), 4, sizeof(TenonOutput), sizeof(TenonAttribute), sizeof(TenonDim)};
inline constexpr std::uint32_t kDebugRecordSize[TENON_DEBUG_SECTION_COUNT] = {1, sizeof(TenonString), 4, 4, 4, 4, sizeof(TenonLocation), 4, 4, 8};

inline constexpr const char* kSectionName[TENON_SECTION_COUNT] = {"text",   "strings",  "symbols",  "expressions", "dims",    "types",      "constants", "regions",
                                                                  "nodes",  "values",   "literals", "operands",    "outputs", "attributes", "items"};
inline constexpr const char* kDebugSectionName[TENON_DEBUG_SECTION_COUNT] = {
    "debug text", "debug strings", "value names", "symbol names", "constant names", "region names", "locations", "node locations", "node origins", "symbol hints"};

}  // namespace tenon::detail
