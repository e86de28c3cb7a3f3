#include "claiming.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/ir/outputs.h"
#include "core/ir/printer.h"
#include "core/ops/catalog.h"
#include "core/ops/view.h"
#include "core/rewrite/later_levels.h"
#include "device/cards.h"
#include "graph/levels.h"
#include "graph/refusal.h"
#include "run/kernels.h"

namespace tenon::cuda {
namespace {

using codegen::Refusal;

constexpr std::int64_t kUnknownExtent = 64;

/// Of one graph. Nodes that say the same of the same types have the same answer: it takes a plan to find it.
class Refusals {
 public:
  Refusals(const ir::Graph& graph, const ClaimChoices& choices) : graph_(graph), choices_(choices) {}

  const std::optional<Refusal>& of(const ir::Node& node) {
    std::string key(node.op);
    for (const ir::NamedAttribute& attribute : node.attributes) key += fmt::format(" {}={}", attribute.name, ir::print_attribute(graph_, attribute.value));
    for (const ir::ValueId v : node.operands)
      key += "; " + (graph_.value(v).kind == ir::ValueKind::literal ? ir::print_literal(graph_, graph_.value(v).literal) : ir::print_type(graph_, graph_.type(v)));
    for (const ir::ValueId v : node.results) key += " -> " + ir::print_type(graph_, graph_.type(v));
    const auto [known, fresh] = known_.try_emplace(std::move(key));
    if (fresh) known->second = refuse_code(graph_, node, choices_of(node));
    return known->second;
  }

 private:
  PlanChoices choices_of(const ir::Node& node) const {
    const ir::Device device = graph_.type(node.results[0]).device;
    PlanChoices choices = device.kind == kDLCUDA ? choices_for(Cards::get().at(device.index).architecture) : PlanChoices();
    choices.has_tensor_cores = choices.has_tensor_cores && choices_.tensor_cores;
    choices.rounding = choices_.rounding;
    return choices;
  }

  const ir::Graph& graph_;
  const ClaimChoices choices_;
  std::unordered_map<std::string, std::optional<Refusal>> known_;
};

std::optional<Refusal> refuse_node(const ir::Graph& graph, const ir::Node& node, const std::string& why_no_card, bool sizes_known, Refusals& refusals) {
  if (!why_no_card.empty()) return Refusal{"device", why_no_card};
  const auto misplaced = [](const ir::Type& type, bool is_operand) {
    if (is_complex(type.dtype)) return std::optional(Refusal{"dtype", fmt::format("{} has no code on a card", name_of(type.dtype))});
    const bool there = type.device.kind == kDLCUDA || (is_operand && type.is_host_scalar());
    return there ? std::nullopt : std::optional(Refusal{"device", "it is not on a card"});
  };
  if (auto r = codegen::refuse_values(graph, node, misplaced)) return r;
  const ops::Op* op = ops::find_op(node.op);
  if (!op || node.op == "constant") return Refusal{"op", fmt::format("{} computes nothing that the catalogue knows", node.op)};
  if (auto r = codegen::refuse_meaning(*op)) return r;
  if (!sizes_known) return Refusal{"shape", "the size of its result depends on data"};
  return refusals.of(node);
}

/// What a claim is made of, by NodeId.
std::vector<std::optional<Refusal>> refuse_nodes(const ir::Graph& graph, const ClaimChoices& choices) {
  codegen::Levels levels(graph);
  Refusals refusals(graph, choices);
  std::vector<std::optional<Refusal>> refused(graph.node_capacity());
  const std::string why_no_card = Cards::get().why_none();
  for (const ir::NodeId id : graph.nodes()) {
    const ir::Node& node = graph.node(id);
    refused[id.value] = refuse_node(graph, node, why_no_card, !levels.defines_sizes(node), refusals);
    levels.place(node, !refused[id.value]);
  }
  return refused;
}

/// Whether a node gives its operand's elements in the order of its indices, as a strided tensor over the same memory may.
bool is_strided_view(const ir::Graph& graph, ir::NodeId id) {
  if (!ops::is_view(graph, id)) return false;
  const auto loop = ops::loop_of(graph, id);
  return std::ranges::none_of(loop->element.instructions, [](const ops::Instruction& i) { return i.op == ops::Primitive::sub || i.op == ops::Primitive::neg; });
}

/// Whether the channels lie last; dimensions of size 1 may lie anywhere.
bool has_channels_last(const ir::Type& type) {
  const ir::Shape strides = type.resolved_strides(), wanted = ir::channels_last_strides(type.shape);
  for (std::size_t d = 0; d < type.rank(); ++d)
    if (type.shape[d] != ir::Dim(1) && strides[d] != wanted[d]) return false;
  return true;
}

/// Whether who runs a node reads a view as it lies, or would copy it: pictures and weights whose channels do not lie last.
bool needs_no_copy(const ir::Graph& graph, ir::NodeId reader, ir::NodeId view) {
  return graph.node(reader).op != "convolution_channels_last" || has_channels_last(graph.type(graph.node(view).operands[0]));
}

/// Copies for the sake of nodes that others run, who need none, are left to them.
void leave_views(const ir::Graph& graph, std::vector<std::optional<Refusal>>& refused) {
  const auto users = graph.users();
  const std::vector<bool> is_output = ir::output_values(graph);
  for (std::size_t i = graph.nodes().size(); i-- > 0;) {
    const ir::NodeId id = graph.nodes()[i];
    if (refused[id.value] || graph.node(id).results.size() != 1) continue;
    const ir::ValueId v = graph.node(id).results[0];
    const bool is_for_others = users[v.value].size() == 1 && !is_output[v.value] && refused[users[v.value][0].value];
    if (is_for_others && is_strided_view(graph, id) && needs_no_copy(graph, users[v.value][0], id)) refused[id.value] = Refusal{"cost", "who reads it needs no copy"};
  }
}

/// For comparing: an extent that varies counts as some.
std::int64_t bytes_of(const ir::Graph& graph, ir::ValueId v) {
  const ir::Type& type = graph.type(v);
  if (!type.is_tensor()) return 0;
  auto bytes = static_cast<std::int64_t>(size_of(type.dtype));
  for (const ir::Dim& d : type.shape) bytes *= d.is_constant() ? d.constant() : kUnknownExtent;
  return bytes;
}

}  // namespace

void claim_nodes(const ir::Graph& graph, Claims& claims, const ClaimChoices& choices) {
  auto refused = refuse_nodes(graph, choices);
  leave_views(graph, refused);
  codegen::Levels levels(graph);
  std::vector<int> level(graph.node_capacity(), 0);
  int last = 0;
  for (const ir::NodeId id : graph.nodes()) {
    const auto& refusal = refused[id.value];
    level[id.value] = levels.place(graph.node(id), !refusal);
    last = std::max(last, level[id.value] + (refusal ? 1 : 0));
    if (refusal) claims.refuse(id.value, refusal->reason, refusal->text);
  }
  const auto is_claimed = [&](ir::NodeId id) { return !refused[id.value]; };
  rewrite::delay_nodes(graph, level, {is_claimed, [&](ir::ValueId v) { return bytes_of(graph, v); }, last});
  std::map<std::pair<int, std::int32_t>, std::vector<std::uint32_t>> groups;  // by level and card
  for (const ir::NodeId id : graph.nodes())
    if (is_claimed(id)) groups[{level[id.value], graph.type(graph.node(id).results[0]).device.index}].push_back(id.value);
  for (const auto& [where, nodes] : groups) claims.claim(nodes);
}

}  // namespace tenon::cuda
