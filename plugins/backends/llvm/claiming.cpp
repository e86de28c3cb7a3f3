#include "claiming.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/ops/build/complex_moves.h"
#include "core/ops/catalog.h"
#include "graph/levels.h"
#include "graph/refusal.h"

namespace tenon::llvm_backend {
namespace {

using codegen::Refusal;

/// Complex elements are moved, put together and taken apart in loop nests and scatters.
bool has_code_for_complex(const ir::Graph& graph, NodeId id, const ops::Op& op) {
  const ir::Node& node = graph.node(id);
  const auto complex = [&](ValueId v) { return graph.value(v).kind != ir::ValueKind::literal && is_complex(graph.type(v).dtype); };
  if (std::ranges::none_of(node.operands, complex) && std::ranges::none_of(node.results, complex)) return true;
  return (op.body || op.loop || op.scatter) && ops::only_moves_complex(graph, id);
}

std::optional<Refusal> refuse_node(const ir::Graph& graph, NodeId id) {
  const ir::Node& node = graph.node(id);
  const auto misplaced = [](const ir::Type& type, bool) { return type.device.is_host() ? std::nullopt : std::optional(Refusal{"device", "it is not on the CPU"}); };
  if (auto r = codegen::refuse_values(graph, node, misplaced)) return r;
  if (node.op == "constant") return {};
  const ops::Op* op = ops::find_op(node.op);
  if (!op) return Refusal{"op", fmt::format("the catalogue has no {}", node.op)};
  if (!has_code_for_complex(graph, id, *op)) return Refusal{"dtype", "what it does with complex numbers has no generated code"};
  return codegen::refuse_meaning(*op);
}

}  // namespace

void claim_nodes(const ir::Graph& graph, Claims& claims) {
  std::map<int, std::vector<std::uint32_t>> groups;
  codegen::Levels levels(graph);
  for (NodeId id : graph.nodes()) {
    const ir::Node& node = graph.node(id);
    const auto refusal = refuse_node(graph, id);
    const bool alone = levels.defines_sizes(node);
    const int level = levels.place(node, !refusal);
    if (refusal) claims.refuse(id.value, refusal->reason, refusal->text);
    else if (alone) claims.claim(std::vector<std::uint32_t>{id.value});
    else groups[level].push_back(id.value);
  }
  for (const auto& [level, nodes] : groups) claims.claim(nodes);
}

}  // namespace tenon::llvm_backend
