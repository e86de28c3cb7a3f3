// The catalogue of ops: lookup by name and by the names of other libraries.
#pragma once

#include <span>
#include <string_view>

#include "core/ops/op.h"

namespace tenon::ops {

/// All ops, in the order of their families. Built once, on first use; thread-safe; lives for ever.
std::span<const Op> all_ops();

/// The op of that name, or null.
const Op* find_op(std::string_view name);

struct AliasMatch {
  const Op* op = nullptr;
  const Alias* alias = nullptr;
};

/// The op that answers to a foreign name ("torch.nn.functional.silu", "torch.Tensor.add", "numpy.sum", "aten.silu.default"); op is null for none.
AliasMatch find_alias(std::string_view name);

/// The op's meaning for one node as a loop nest: from `.body` (with broadcasting) or `.loop`; nothing for the other kinds.
/// Operand k of the loop body is operand k of the node; literals have become constants of the dtype that the op computes in.
std::optional<LoopBody> loop_of(const ir::Graph& graph, ir::NodeId node);

}  // namespace tenon::ops
