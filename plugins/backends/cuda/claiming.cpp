#include "claiming.h"

#include <fmt/format.h>

#include <map>
#include <optional>

#include "core/ops/catalog.h"
#include "device/cards.h"
#include "graph/levels.h"
#include "graph/refusal.h"
#include "run/kernels.h"

namespace tenon::cuda {
namespace {

using codegen::Refusal;

std::optional<Refusal> refuse_node(const ir::Graph& graph, const ir::Node& node, const std::string& why_no_card, bool sizes_known) {
  if (!why_no_card.empty()) return Refusal{"device", why_no_card};
  const auto misplaced = [](const ir::Type& type, bool is_operand) {
    const bool there = type.device.kind == kDLCUDA || (is_operand && type.is_host_scalar());
    return there ? std::nullopt : std::optional(Refusal{"device", "it is not on a card"});
  };
  if (auto r = codegen::refuse_values(graph, node, misplaced)) return r;
  const ops::Op* op = ops::find_op(node.op);
  if (!op || node.op == "constant") return Refusal{"op", fmt::format("{} computes nothing that the catalogue knows", node.op)};
  if (auto r = codegen::refuse_meaning(*op)) return r;
  if (!sizes_known) return Refusal{"shape", "the size of its result depends on data"};
  return refuse_code(graph, node);
}

}  // namespace

void claim_nodes(const ir::Graph& graph, Claims& claims) {
  std::map<std::pair<int, std::int32_t>, std::vector<std::uint32_t>> groups;  // by level and card
  codegen::Levels levels(graph);
  const std::string why_no_card = Cards::get().why_none();
  for (const ir::NodeId id : graph.nodes()) {
    const ir::Node& node = graph.node(id);
    const auto refusal = refuse_node(graph, node, why_no_card, !levels.defines_sizes(node));
    const int level = levels.place(node, !refusal);
    if (refusal) claims.refuse(id.value, refusal->reason, refusal->text);
    else groups[{level, graph.type(node.results[0]).device.index}].push_back(id.value);
  }
  for (const auto& [where, nodes] : groups) claims.claim(nodes);
}

}  // namespace tenon::cuda
