#include "claiming.h"

#include <fmt/format.h>

#include <map>
#include <optional>

#include "core/ops/catalog.h"
#include "device/cards.h"
#include "graph/levels.h"
#include "run/kernels.h"

namespace tenon::cuda {
namespace {

struct Refusal {
  const char* reason;
  std::string text;
};

std::optional<Refusal> refuse_type(const ir::Type& type, bool may_be_number) {
  if (!type.is_tensor()) return Refusal{"op", "it is ordered by a token"};
  if (is_complex(type.dtype)) return Refusal{"dtype", fmt::format("{} has no generated code", name_of(type.dtype))};
  if (type.device.kind != kDLCUDA && !(may_be_number && type.is_host_scalar())) return Refusal{"device", "it is not on a card"};
  return {};
}

std::optional<Refusal> refuse_node(const ir::Graph& graph, const ir::Node& node, bool sizes_known) {
  if (const std::string why = Cards::get().why_none(); !why.empty()) return Refusal{"device", why};
  if (!node.regions.empty()) return Refusal{"op", "it has regions"};
  for (const ir::ValueId v : node.results)
    if (auto r = refuse_type(graph.type(v), false)) return r;
  for (const ir::ValueId v : node.operands)
    if (graph.value(v).kind != ir::ValueKind::literal)
      if (auto r = refuse_type(graph.type(v), true)) return r;
  const ops::Op* op = ops::find_op(node.op);
  if (!op || node.op == "constant") return Refusal{"op", fmt::format("{} computes nothing that the catalogue knows", node.op)};
  if (op->traits.random || op->traits.opaque || op->traits.control) return Refusal{"op", fmt::format("{} is not pure", node.op)};
  if (!op->body && !op->loop && !op->scatter && !op->kernel && !op->decompose) return Refusal{"op", fmt::format("{} has no meaning in the catalogue", node.op)};
  if (!sizes_known) return Refusal{"shape", "the size of its result depends on data"};
  if (const std::string why = why_without_code(graph, node); !why.empty()) return Refusal{"op", why};
  return {};
}

}  // namespace

void claim_nodes(const ir::Graph& graph, Claims& claims) {
  std::map<std::pair<int, std::int32_t>, std::vector<std::uint32_t>> groups;  // by level and card
  codegen::Levels levels(graph);
  for (const ir::NodeId id : graph.nodes()) {
    const ir::Node& node = graph.node(id);
    const auto refusal = refuse_node(graph, node, !levels.defines_sizes(node));
    const int level = levels.place(node, !refusal);
    if (refusal) claims.refuse(id.value, refusal->reason, refusal->text);
    else groups[{level, graph.type(node.results[0]).device.index}].push_back(id.value);
  }
  for (const auto& [where, nodes] : groups) claims.claim(nodes);
}

}  // namespace tenon::cuda
