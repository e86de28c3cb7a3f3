// Loops in the order of what they step through, and those that step as one merged: what every target does to a kernel before it shares its
// points out.
#pragma once

#include <functional>
#include <optional>

#include "loops/kernel.h"

namespace tenon::codegen {

/// Calls `visit` for each index expression of the kernel that loop variables may occur in.
void for_each_index(Kernel& kernel, const std::function<void(Dim&)>& visit);

/// True when the index steps through both loops as through one.
bool steps_as_one(const Dim& index, const Loop& a, const Loop& b);

/// True when the length of some of the loops depends on the variable.
bool depends_on(const std::vector<Loop>& loops, SymbolId variable);

/// Merges each loop with the next one where that changes no access; the merged loop keeps the inner one's variable.
void merge_contiguous(Kernel& kernel, std::vector<Loop>& loops, IndexAlgebra& algebra);

/// Puts the loops that results step through with the shortest stride last, so that vectors run over what is contiguous.
void order_by_store(Kernel& kernel, std::vector<Loop>& loops, const IndexAlgebra& algebra);

/// Counts the accesses that are neither contiguous nor fixed along the loop.
int awkward_accesses(const Kernel& kernel, SymbolId variable);

/// The inner loop along which everything that the kernel reads is contiguous or fixed, when that holds neither for the last inner nor for
/// the last outer loop: vectors would gather along both.
std::optional<std::size_t> contiguous_inner_loop(const Kernel& kernel);

}  // namespace tenon::codegen
