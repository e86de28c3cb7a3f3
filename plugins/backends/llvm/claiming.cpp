#include "claiming.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/ops/catalog.h"
#include "graph/levels.h"

namespace tenon::llvm_backend {
namespace {

struct Refusal {
  const char* reason;
  std::string text;
};

std::optional<Refusal> refuse_type(const ir::Type& type) {
  if (!type.is_tensor()) return Refusal{"op", "it is ordered by a token"};
  if (is_complex(type.dtype)) return Refusal{"dtype", fmt::format("{} has no generated code", name_of(type.dtype))};
  if (!type.device.is_host()) return Refusal{"device", "it is not on the CPU"};
  return {};
}

std::optional<Refusal> refuse_node(const ir::Graph& graph, const ir::Node& node) {
  if (!node.regions.empty()) return Refusal{"op", "it has regions"};
  for (ValueId v : node.results)
    if (auto r = refuse_type(graph.type(v))) return r;
  for (ValueId v : node.operands)
    if (graph.value(v).kind != ir::ValueKind::literal)
      if (auto r = refuse_type(graph.type(v))) return r;
  if (node.op == "constant") return {};
  const ops::Op* op = ops::find_op(node.op);
  if (!op) return Refusal{"op", fmt::format("the catalogue has no {}", node.op)};
  if (op->traits.random || op->traits.opaque || op->traits.control) return Refusal{"op", fmt::format("{} is not pure", node.op)};
  if (!op->body && !op->loop && !op->scatter && !op->kernel && !op->decompose) return Refusal{"op", fmt::format("{} has no meaning in the catalogue", node.op)};
  return {};
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
