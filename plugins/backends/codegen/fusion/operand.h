// The operands of a sum of products: read in place as strided matrices, or written by kernels of their own.
#pragma once

#include <optional>
#include <set>
#include <utility>

#include "fusion/draft.h"
#include "fusion/plan.h"

namespace tenon::codegen {

/// The loops that an operation depends on, through its operands.
std::set<SymbolId> loops_of(const OperationList& operations, OpId root);

/// The constant by which some load divides the loop, if any: as the channels of a convolution by its groups.
std::optional<std::int64_t> divisor_of(const OperationList& operations, SymbolId loop);

/// A load that is affine in all loops: the stride along each of `loops`, and the offset.
struct InPlace {
  ValueId value;
  Dim offset;
  std::vector<Dim> strides;
};
std::optional<InPlace> in_place(const Draft& draft, OpId root, std::span<const Loop> loops);

/// The kernel that stores `root` at `offset` of the last of its buffers, kPanel; `replacements` stand for the draft's loops. The
/// kernel's own loops remain to be set.
KernelStep storing(const Draft& draft, OpId root, const FusionContext& context, std::span<const std::pair<SymbolId, Dim>> replacements, Dim offset);

/// The kernel that stores the place of the load, or −1 where `mask` (kNoOp: none) does not hold, as i64; else like `storing`.
KernelStep locating(const Draft& draft, OpId load, OpId mask, const FusionContext& context, std::span<const std::pair<SymbolId, Dim>> replacements, Dim offset);

}  // namespace tenon::codegen
