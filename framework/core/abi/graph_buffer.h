/*
 * The graph as it crosses between host and plugin, and as it is hashed, stored and replayed: flat little-endian records.
 *
 * A buffer is a semantic part followed by an optional debug part. Each part is a TenonBufferHeader, a table of sections, and the
 * sections in the order of the table, each at a multiple of 8 bytes. Offsets count from the start of the part. The buffer itself
 * is aligned to 8 bytes. Equal graphs (up to ids, names and locations) give equal semantic parts; only that part is hashed.
 *
 * Evolution: a section's records are read with the stride that the table states, so a later writer may append fields to a record
 * and sections to the table; a reader of this schema then skips what it does not know. Anything else is a new schema.
 *
 * Ranges are {first, count} into another section. The ranges of consecutive records follow each other without gap or overlap and
 * use up the section they point into, so that the work of reading is linear in the size of the buffer.
 *
 * Nothing here may be read before buffer_verifier.h (or the host, for what it hands to plugins) has accepted the buffer.
 * In C++ use tenon::GraphView (graph_view.h).
 */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENON_BUFFER_MAGIC 0x0042474e4f4e4554ull       /* "TENONGB" */
#define TENON_BUFFER_DEBUG_MAGIC 0x0044474e4f4e4554ull /* "TENONGD" */
#define TENON_BUFFER_SCHEMA 1u
#define TENON_NONE 0xffffffffu /* an index that refers to nothing */

/* Limits that the verifier enforces, so that readers can recurse and allocate without fear. */
#define TENON_MAX_RANK 64u
#define TENON_MAX_REGION_DEPTH 32u
#define TENON_MAX_EXPRESSION_SIZE 1024u /* leaves and operations of one expression, shared ones counted each time */
#define TENON_MAX_TEXT 0x10000000u         /* bytes of all strings of a part, counted as often as records refer to them */

typedef struct TenonBufferHeader {
  uint64_t magic;
  uint32_t schema;
  uint32_t header_size;   /* of this struct; the section table starts there */
  uint32_t part_size;     /* bytes of this part, a multiple of 8; the debug part starts there */
  uint32_t section_count; /* entries of the table */
} TenonBufferHeader;

typedef struct TenonBufferSection {
  uint32_t offset;
  uint32_t count;  /* records */
  uint32_t stride; /* bytes from one record to the next */
  uint32_t reserved;
} TenonBufferSection;

/* Positions in the section table of the semantic part. */
enum {
  TENON_SECTION_TEXT = 0,    /* bytes; each string is followed by a NUL */
  TENON_SECTION_STRINGS,     /* TenonString */
  TENON_SECTION_SYMBOLS,     /* TenonSymbol */
  TENON_SECTION_EXPRESSIONS, /* TenonExpression */
  TENON_SECTION_DIMS,        /* TenonDim: shapes and strides of types */
  TENON_SECTION_TYPES,       /* TenonType, each once, in order of first use */
  TENON_SECTION_CONSTANTS,   /* TenonConstant */
  TENON_SECTION_REGIONS,     /* TenonRegion; 0 is the graph itself */
  TENON_SECTION_NODES,       /* TenonNode */
  TENON_SECTION_VALUES,      /* TenonValue */
  TENON_SECTION_LITERALS,    /* TenonLiteral */
  TENON_SECTION_OPERANDS,    /* uint32_t: values */
  TENON_SECTION_OUTPUTS,     /* TenonOutput */
  TENON_SECTION_ATTRIBUTES,  /* TenonAttribute, sorted by name within a node */
  TENON_SECTION_ITEMS,       /* TenonDim: elements of attributes that are lists */
  TENON_SECTION_COUNT
};

/* Positions in the section table of the debug part. Per-record tables have no entries, or one for each record. */
enum {
  TENON_DEBUG_TEXT = 0,
  TENON_DEBUG_STRINGS,        /* TenonString */
  TENON_DEBUG_VALUE_NAMES,    /* uint32_t a value: string, or none */
  TENON_DEBUG_SYMBOL_NAMES,   /* uint32_t a symbol */
  TENON_DEBUG_CONSTANT_NAMES, /* uint32_t a constant */
  TENON_DEBUG_REGION_NAMES,   /* uint32_t a region */
  TENON_DEBUG_LOCATIONS,      /* TenonLocation */
  TENON_DEBUG_NODE_LOCATIONS, /* uint32_t a node: location, or none */
  TENON_DEBUG_NODE_ORIGINS,   /* uint32_t a node: its id in the graph that this one was cut from, or none */
  TENON_DEBUG_SYMBOL_HINTS,   /* int64_t a symbol: a value that it had where the graph was made, -1 where that is not known */
  TENON_DEBUG_SECTION_COUNT
};

typedef struct TenonString {
  uint32_t offset; /* in the text section */
  uint32_t size;   /* without the NUL */
} TenonString;

/* A symbolic integer and the range in which the graph holds, both ends included. */
typedef struct TenonSymbol {
  int64_t min;
  int64_t max;
} TenonSymbol;

enum {
  TENON_EXPRESSION_CONSTANT = 0, /* value */
  TENON_EXPRESSION_SYMBOL = 1,   /* a: symbol */
  TENON_EXPRESSION_ADD = 2,      /* a, b: earlier expressions, here and below */
  TENON_EXPRESSION_MUL = 3,
  TENON_EXPRESSION_FLOOR_DIV = 4, /* as in Python: towards minus infinity */
  TENON_EXPRESSION_MOD = 5,       /* as in Python: the sign of the divisor */
  TENON_EXPRESSION_MIN = 6,
  TENON_EXPRESSION_MAX = 7,
  TENON_EXPRESSION_KINDS
};

typedef struct TenonExpression {
  uint32_t kind;
  uint32_t a;
  uint32_t b;
  uint32_t reserved;
  int64_t value;
} TenonExpression;

/* An integer (or the bits of a float64, in a list of floats): `value`, unless there is an expression. */
typedef struct TenonDim {
  int64_t value;
  uint32_t expression; /* or none */
  uint32_t reserved;
} TenonDim;

/* Element types; the numbers of tenon::DType. */
enum {
  TENON_BOOL = 0,
  TENON_U8 = 1,
  TENON_I8 = 2,
  TENON_I16 = 3,
  TENON_I32 = 4,
  TENON_I64 = 5,
  TENON_F16 = 6,
  TENON_BF16 = 7,
  TENON_F32 = 8,
  TENON_F64 = 9,
  TENON_C64 = 10,
  TENON_C128 = 11,
  TENON_DTYPES
};

enum { TENON_TYPE_TENSOR = 0, TENON_TYPE_TOKEN = 1, TENON_TYPE_KINDS };

typedef struct TenonType {
  uint8_t kind;
  uint8_t dtype;
  uint8_t device_kind; /* DLPack's number: 1 is the host */
  uint8_t has_strides; /* 0: row-major. 1: `rank` strides, in elements, follow the shape in the dims section */
  int32_t device_index;
  uint32_t first_dim;
  uint32_t rank;
} TenonType;

/* A tensor that travels beside the buffer. The node `constant` with the integer attribute `index` reads it. */
typedef struct TenonConstant {
  uint32_t type;
  uint32_t reserved;
} TenonConstant;

/* A graph: the whole, or a branch or loop body of the node that owns it. Its values are its inputs, then the results of its nodes in
   order, then its literals in order of first use, and nothing else is visible in it. A region comes after the one it is nested in. */
typedef struct TenonRegion {
  uint32_t owner; /* node, or none for region 0 */
  uint32_t first_node;
  uint32_t node_count;
  uint32_t first_value;
  uint32_t input_count;
  uint32_t result_count;
  uint32_t literal_count;
  uint32_t first_output;
  uint32_t output_count;
  uint32_t reserved;
} TenonRegion;

typedef struct TenonNode {
  uint32_t op; /* string */
  uint32_t region;
  uint32_t first_operand;
  uint32_t operand_count;
  uint32_t first_attribute;
  uint32_t attribute_count;
  uint32_t first_result; /* value */
  uint32_t result_count;
  uint32_t first_region;
  uint32_t region_count;
} TenonNode;

enum { TENON_VALUE_INPUT = 0, TENON_VALUE_RESULT = 1, TENON_VALUE_LITERAL = 2, TENON_VALUE_KINDS };

typedef struct TenonValue {
  uint32_t kind;
  uint32_t type;
  uint32_t node;  /* result: the node that defines it; else none */
  uint32_t index; /* input: position among the region's inputs; result: among the node's results; literal: in its section */
} TenonValue;

enum { TENON_LITERAL_BOOL = 0, TENON_LITERAL_INT = 1, TENON_LITERAL_FLOAT = 2, TENON_LITERAL_KINDS };

/* An immediate number as an operand. Its type is bool[], i64[] or f64[]; the op converts it to the dtype its tensors share. */
typedef struct TenonLiteral {
  uint32_t kind;
  uint32_t expression; /* int: or none */
  int64_t bits;        /* 0 or 1; the integer; the bits of the float64 */
} TenonLiteral;

enum { TENON_OUTPUT_RESULT = 0, TENON_OUTPUT_UPDATE = 1, TENON_OUTPUT_SAVED = 2, TENON_OUTPUT_KINDS };

typedef struct TenonOutput {
  uint32_t value;
  uint32_t kind;
  uint32_t target; /* update: the input that takes the value; else none */
  uint32_t reserved;
} TenonOutput;

enum {
  TENON_ATTRIBUTE_NONE = 0, /* given, and absent on purpose */
  TENON_ATTRIBUTE_BOOL = 1,
  TENON_ATTRIBUTE_INT = 2,
  TENON_ATTRIBUTE_FLOAT = 3,
  TENON_ATTRIBUTE_STRING = 4,
  TENON_ATTRIBUTE_DTYPE = 5,
  TENON_ATTRIBUTE_INTS = 6,
  TENON_ATTRIBUTE_FLOATS = 7,
  TENON_ATTRIBUTE_KINDS
};

typedef struct TenonAttribute {
  uint32_t name; /* string */
  uint32_t kind;
  uint32_t ref;   /* int: expression or none; string: string; lists: first item; else none */
  uint32_t count; /* lists: items; else 0 */
  int64_t bits;   /* bool: 0 or 1; int without expression; bits of the float64; dtype; else 0 */
} TenonAttribute;

typedef struct TenonLocation {
  uint32_t file; /* string or none */
  uint32_t line; /* 0: unknown */
  uint32_t function; /* string or none */
  uint32_t code;     /* string or none: the source text of the line */
} TenonLocation;

#ifdef __cplusplus
}
#endif
