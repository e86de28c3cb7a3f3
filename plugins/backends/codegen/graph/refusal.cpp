#include "graph/refusal.h"

#include <fmt/format.h>

namespace tenon::codegen {

std::optional<Refusal> refuse_values(const ir::Graph& graph, const ir::Node& node,
                                     const std::function<std::optional<Refusal>(const ir::Type&, bool)>& misplaced) {
  const auto refuse = [&](ir::ValueId v, bool is_operand) -> std::optional<Refusal> {
    const ir::Type& type = graph.type(v);
    if (!type.is_tensor()) return Refusal{"op", "it is ordered by a token"};
    return misplaced(type, is_operand);
  };
  if (!node.regions.empty()) return Refusal{"op", "it has regions"};
  for (const ir::ValueId v : node.results)
    if (auto r = refuse(v, false)) return r;
  for (const ir::ValueId v : node.operands)
    if (graph.value(v).kind != ir::ValueKind::literal)
      if (auto r = refuse(v, true)) return r;
  return {};
}

std::optional<Refusal> refuse_meaning(const ops::Op& op) {
  if (op.traits.random || op.traits.opaque || op.traits.control) return Refusal{"op", fmt::format("{} is not pure", op.name)};
  if (!op.body && !op.loop && !op.scatter && !op.kernel && !op.decompose) return Refusal{"op", fmt::format("{} has no meaning in the catalogue", op.name)};
  return {};
}

}  // namespace tenon::codegen
