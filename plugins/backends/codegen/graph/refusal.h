// Why no backend of generated code takes a node, whatever its target.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/ir/graph.h"
#include "core/ops/op.h"

namespace tenon::codegen {

struct Refusal {
  const char* reason;  // a code of docs/plugins.md
  std::string text;
};

/// What is wrong with the values of a node: regions, tokens, or what `misplaced` says of a type: why it is not on the target.
/// `is_operand` tells it of what.
std::optional<Refusal> refuse_values(const ir::Graph& graph, const ir::Node& node,
                                     const std::function<std::optional<Refusal>(const ir::Type& type, bool is_operand)>& misplaced);

/// Whether what an op means leaves nothing to generate.
std::optional<Refusal> refuse_meaning(const ops::Op& op);

}  // namespace tenon::codegen
