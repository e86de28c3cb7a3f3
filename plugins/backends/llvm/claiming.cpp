#include "claiming.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/ops/catalog.h"
#include "graph/levels.h"
#include "graph/refusal.h"

namespace tenon::llvm_backend {
namespace {

using codegen::Refusal;

std::optional<Refusal> refuse_node(const ir::Graph& graph, const ir::Node& node) {
  const auto misplaced = [](const ir::Type& type, bool) { return type.device.is_host() ? std::nullopt : std::optional(Refusal{"device", "it is not on the CPU"}); };
  if (auto r = codegen::refuse_values(graph, node, misplaced)) return r;
  if (node.op == "constant") return {};
  const ops::Op* op = ops::find_op(node.op);
  if (!op) return Refusal{"op", fmt::format("the catalogue has no {}", node.op)};
  return codegen::refuse_meaning(*op);
}

}  // namespace

void claim_nodes(const ir::Graph& graph, Claims& claims) {
  std::map<int, std::vector<std::uint32_t>> groups;
  codegen::Levels levels(graph);
  for (NodeId id : graph.nodes()) {
    const ir::Node& node = graph.node(id);
    const auto refusal = refuse_node(graph, node);
    const bool alone = levels.defines_sizes(node);
    const int level = levels.place(node, !refusal);
    if (refusal) claims.refuse(id.value, refusal->reason, refusal->text);
    else if (alone) claims.claim(std::vector<std::uint32_t>{id.value});
    else groups[level].push_back(id.value);
  }
  for (const auto& [level, nodes] : groups) claims.claim(nodes);
}

}  // namespace tenon::llvm_backend
