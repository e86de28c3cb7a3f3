// The one verifier of graph buffers: after it has accepted one, no read through GraphView or ir::read_buffer can leave the buffer,
// recurse without bound, or meet a kind that it does not know. Header-only. Linear in the size of the buffer.
//
// What it demands, beside ids that exist and kinds that are known:
//  - ranges of consecutive records follow each other and use up the section they point into (no byte is read twice);
//  - an expression uses earlier expressions only, and is no larger than TENON_MAX_EXPRESSION_SIZE when written out;
//  - constant dimensions are not negative, and the bytes of a tensor can be counted in 63 bits; a token has no dimensions, dtype or
//    device; ranks, and the nesting of regions, are within their limits;
//  - values of a region are its inputs, the results of its nodes in order, its literals; an operand is defined before its use;
//  - a region other than 0 belongs to exactly one node, of an earlier region;
//  - attributes are sorted by name, each name once; names of ops and attributes have 1 to 255 bytes; the strings that records refer
//    to have at most TENON_MAX_TEXT bytes, counted as often as they are referred to;
//  - a node `constant` names an existing constant, and has its type;
//  - outputs are inputs or results; an update has its target's dtype and shape, and is the only one of that input; regions other
//    than 0 have plain results only.
#pragma once

#include "core/abi/debug_verifier.h"
#include "core/abi/semantic_verifier.h"

namespace tenon {

/// Checks a graph buffer, both parts. Gives the empty string when it may be read, else what is wrong and where: the section, the
/// record ("nodes[12]: operand 1 is value 99, which is not defined before it").
inline std::string verify_buffer(TenonBytes bytes) {
  detail::SemanticVerifier semantic(bytes);
  if (!semantic.check()) return semantic.error;
  const std::uint32_t size = detail::header_of(bytes.data).part_size;
  if (bytes.size == size) return {};
  detail::DebugVerifier debug({bytes.data + size, bytes.size - size}, semantic.sections());
  return debug.check() ? std::string() : debug.error;
}

/// The part of a verified buffer that carries meaning: what is hashed and compared. Equal graphs have equal semantic bytes.
inline TenonBytes semantic_bytes(TenonBytes bytes) { return {bytes.data, detail::header_of(bytes.data).part_size}; }

}  // namespace tenon
