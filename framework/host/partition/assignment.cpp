#include "host/partition/assignment.h"

#include <algorithm>
#include <optional>

#include "core/ir/symbol_uses.h"
#include "host/partition/group_graph.h"
#include "host/partition/placement.h"

namespace tenon::host {
namespace {

/// The code of docs/plugins.md that says: it can be run here, and is slow.
constexpr std::string_view kRefusedForCost = "cost";

/// The nodes on devices that the backend serves among `free`, in their order; the others are noted as refused.
std::vector<NodeId> served_nodes(Assignment& assignment, const ir::Graph& graph, const BackendInstance& backend, std::vector<NodeId> free) {
  if (is_on_host(graph) && serves(backend.table(), {})) return free;
  std::erase_if(free, [&](NodeId n) {
    if (copies_between_devices(graph, graph.node(n))) return true;
    if (!unserved_device(backend.table(), graph, graph.node(n))) return false;
    assignment.refusals[n].push_back(fmt::format("{}: device, it serves {}", backend.name(), devices_text(backend.table())));
    return true;
  });
  return free;
}

/// The nodes that nobody has, in the order of the graph, without those that a backend of static shapes cannot take.
std::vector<NodeId> free_nodes(const Assignment& assignment, const ir::Graph& graph, bool static_shapes) {
  std::vector<bool> late(graph.symbols().size(), false);  // known only while running
  if (static_shapes) {
    const std::vector<NodeId> definers = defining_nodes(graph);
    for (std::size_t s = 0; s < definers.size(); ++s) late[s] = static_cast<bool>(definers[s]);
  }
  std::vector<NodeId> free;
  for (NodeId n : graph.nodes()) {
    if (assignment.taken(n) || reads_constant(graph.node(n))) continue;
    bool possible = true;
    if (static_shapes) {
      const auto visit = [&](SymbolId s) { possible = possible && !late[s.value]; };
      visit_symbols(graph, graph.node(n), visit);
      for (ValueId v : graph.node(n).operands) visit_symbols(graph.type(v), visit);
    }
    if (possible) free.push_back(n);
  }
  return free;
}

/// The sizes to put in for the symbols of a cut graph.
std::vector<std::int64_t> sizes_for(const GroupGraph& cut, std::span<const std::int64_t> expected) {
  std::vector<std::int64_t> sizes;
  for (SymbolId outer : cut.symbols) sizes.push_back(expected[outer.value]);
  return sizes;
}

/// The groups, each divided where its nodes are on several devices: a group is of one.
template <class InParent>
std::vector<ClaimedGroup> by_device(const ir::Graph& graph, std::vector<ClaimedGroup> groups, const InParent& in_parent) {
  if (is_on_host(graph)) return groups;
  std::vector<ClaimedGroup> divided;
  for (ClaimedGroup& group : groups) {
    const auto device_of = [&](NodeId n) { return find_device(graph, graph.node(in_parent(n)), [](ir::Device) { return true; }).value_or(ir::Device()); };
    while (!group.nodes.empty()) {
      const ir::Device device = device_of(group.nodes.front());
      ClaimedGroup& part = divided.emplace_back(ClaimedGroup{{}, group.constants});
      std::erase_if(group.nodes, [&](NodeId n) { return device_of(n) == device && (part.nodes.push_back(n), true); });
    }
  }
  return divided;
}

/// What the whole graph writes back into an input that both have, the offered part does too: a backend may run it last.
void mark_updates(const ir::Graph& graph, GroupGraph& offered) {
  std::map<ValueId, ValueId> targets;
  for (const ir::Output& output : graph.outputs())
    if (output.kind == ir::OutputKind::update) targets.emplace(output.value, output.target);
  if (targets.empty()) return;
  std::vector<ir::Output> outputs(offered.graph.outputs().begin(), offered.graph.outputs().end());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto target = targets.find(offered.outputs[i]);
    const auto input = target == targets.end() ? offered.inputs.end() : std::ranges::find(offered.inputs, target->second);
    if (input != offered.inputs.end()) outputs[i] = {outputs[i].value, ir::OutputKind::update, offered.graph.inputs()[static_cast<std::size_t>(input - offered.inputs.begin())]};
  }
  offered.graph.set_outputs(std::move(outputs));
}

void ask_one(Assignment& assignment, const ir::Graph& graph, const PartitionRequest& request, std::size_t position) {
  BackendInstance& backend = *request.backends[position];
  const bool static_shapes = !backend.has(TENON_DYNAMIC_SHAPES) && !graph.symbols().empty();
  const std::vector<NodeId> possible = free_nodes(assignment, graph, static_shapes);
  const std::vector<NodeId> free = served_nodes(assignment, graph, backend, possible);
  if (free.empty()) return;

  const bool whole = !static_shapes && free.size() == possible.size() && std::ranges::none_of(graph.nodes(), [&](NodeId n) { return assignment.taken(n); });
  ClaimAnswer answer;
  std::vector<NodeId> parent_of;  // by NodeId of the cut graph
  if (whole) {
    answer = ask_claims(backend, graph, request.constants, request.events, request.options);
  } else {
    GroupGraph offered = GroupCutter(graph).cut(free);
    mark_updates(graph, offered);
    if (static_shapes) offered.graph = with_sizes(offered.graph, sizes_for(offered, request.expected_sizes));
    parent_of.resize(offered.graph.node_capacity());
    for (std::size_t i = 0; i < offered.nodes.size(); ++i) parent_of[offered.graph.nodes()[i].value] = offered.nodes[i];
    answer = ask_claims(backend, offered.graph, request.constants, request.events, request.options);
  }
  const auto in_parent = [&](NodeId n) { return whole ? n : parent_of[n.value]; };
  for (const ClaimedGroup& group : by_device(graph, answer.groups, in_parent)) {
    for (NodeId n : group.nodes) assignment.group_of[in_parent(n).value] = static_cast<std::uint32_t>(assignment.backend_of.size());
    assignment.backend_of.push_back(static_cast<std::uint32_t>(position));
    auto& constants = assignment.constants_of.emplace_back();
    for (NodeId n : group.constants) constants.push_back(in_parent(n));
    std::ranges::sort(constants, {}, &NodeId::value);
  }
  for (const RefusedNode& refusal : answer.refusals) {
    if (refusal.reason == kRefusedForCost) assignment.at_a_price.try_emplace(in_parent(refusal.node), static_cast<std::uint32_t>(position));
    assignment.refusals[in_parent(refusal.node)].push_back(fmt::format("{}: {}{}{}", backend.name(), refusal.reason, refusal.text.empty() ? "" : ", ", refusal.text));
  }
}

}  // namespace

Assignment unassigned(const ir::Graph& graph) { return {std::vector<std::uint32_t>(graph.node_capacity(), Assignment::kNobody), {}, {}, {}, {}}; }

void ask_backends(Assignment& assignment, const ir::Graph& graph, const PartitionRequest& request, std::size_t first, std::size_t last, bool again) {
  for (std::size_t position = first; position < last; ++position)
    if (!again || !request.backends[position]->has(TENON_ASK_ONCE)) ask_one(assignment, graph, request, position);
}

}  // namespace tenon::host
