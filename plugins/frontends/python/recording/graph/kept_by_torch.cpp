#include "python/recording/graph/kept_by_torch.h"

#include <algorithm>

#include "core/rewrite/differentiate.h"
#include "python/objects/graph_break.h"

namespace tenon::python {
namespace {

/// What lies where a value does: behind nodes that cut it off from its history, or that turn it around for a product.
ir::ValueId lying_there(const ir::Graph& graph, ir::ValueId value) {
  while (graph.value(value).kind == ir::ValueKind::result) {
    const ir::Node& node = graph.node(graph.value(value).node);
    if (node.op != "detach" && node.op != "permute") break;
    value = node.operands[0];
  }
  return value;
}

}  // namespace

std::vector<std::uint32_t> KeptByTorch::writes_of(std::span<const Index> tensors) const {
  std::vector<std::uint32_t> writes;
  for (Index index : tensors) writes.push_back(core_.stand_ins.storage_of(index).writes);
  return writes;
}

void KeptByTorch::note_call(Index first, std::size_t first_node, std::span<const Index> operands, std::span<const std::uint32_t> writes, bool keeps) {
  std::vector<Kept> read, given;
  const auto at = [&](Index index) { return Kept{core_.stand_ins[index].value, core_.stand_ins.owner(index), core_.stand_ins.storage_of(index).writes, 0}; };
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const bool is_written = core_.stand_ins.storage_of(operands[k]).writes != writes[k];
    if (is_written) given.push_back(at(operands[k]));
    else if (keeps || !can_require_gradient(core_.stand_ins[operands[k]].dtype)) read.push_back(at(operands[k]));
  }
  for (Index index = first; index < core_.stand_ins.size(); ++index) given.push_back(at(index));
  const bool gives = first < core_.stand_ins.size();
  if (!gives && operands.empty()) return;
  const Index made = gives ? first : operands.front();
  for (ir::NodeId id : core_.graph.nodes().subspan(std::min(first_node, core_.graph.nodes().size()))) {
    const ir::Node& node = core_.graph.node(id);
    std::vector<Kept> kept;
    const auto keep = [&](ir::ValueId value, ir::ValueId lies, const std::vector<Kept>& among) {
      if (const auto found = std::ranges::find(among, lies, &Kept::value); found != among.end()) kept.push_back({value, found->memory, found->writes, made});
    };
    for (ir::ValueId v : node.operands) {
      keep(v, v, read);
      if (const ir::ValueId lies = lying_there(core_.graph, v); lies != v) keep(v, lies, read);
    }
    for (ir::ValueId v : node.results) keep(v, v, given);
    if (!kept.empty()) by_node_.try_emplace(id.value, std::move(kept));
  }
}

bool KeptByTorch::is_any_written() const {
  return std::ranges::any_of(by_node_, [&](const auto& node) { return std::ranges::any_of(node.second, [&](const Kept& kept) { return is_written(kept); }); });
}

void KeptByTorch::require_unwritten(std::span<const ir::NodeId> nodes, const std::vector<bool>& may_have) const {
  for (ir::NodeId id : nodes) {
    const auto found = by_node_.find(id.value);
    if (found == by_node_.end()) continue;
    for (const Kept& kept : found->second)
      if (is_written(kept) && rewrite::gradient_reads(core_.graph, id, kept.value, may_have))
        throw Unbuildable(core_.stand_ins[kept.made].object.get(), "a tensor was written that torch keeps for a gradient");
  }
}

}  // namespace tenon::python
