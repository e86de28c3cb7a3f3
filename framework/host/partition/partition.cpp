#include "host/partition/partition.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/ir/symbol_uses.h"
#include "core/ops/catalog.h"
#include "host/partition/assignment.h"
#include "host/partition/convex.h"
#include "host/partition/detour.h"
#include "host/partition/expansion.h"
#include "host/partition/group_graph.h"
#include "host/partition/group_order.h"
#include "host/partition/placement.h"
#include "host/partition/recomputation.h"

namespace tenon::host {
namespace {

struct Assigned {
  ir::Graph graph;
  Assignment assignment;
};

/// Nodes that a backend before the last could still take: on devices that one of them serves.
class Open {
 public:
  Open(const ir::Graph& graph, std::span<BackendInstance* const> preferred)
      : graph_(graph), preferred_(preferred), all_served_(is_on_host(graph) && std::ranges::any_of(preferred, [](BackendInstance* b) { return serves(b->table(), {}); })) {}

  bool operator()(const Assignment& assignment, NodeId n) const {
    const ir::Node& node = graph_.node(n);
    if (assignment.taken(n) || reads_constant(node)) return false;
    if (all_served_) return true;
    return !copies_between_devices(graph_, node) && std::ranges::any_of(preferred_, [&](BackendInstance* b) { return !unserved_device(b->table(), graph_, node); });
  }

 private:
  const ir::Graph& graph_;
  std::span<BackendInstance* const> preferred_;
  const bool all_served_;
};

/// Paths of the nodes that no backend but the last has taken, and one of them might.
ExpansionChoice untaken(const ExpandedGraph& expanded, const Assignment& assignment, std::span<BackendInstance* const> preferred) {
  const Open open(expanded.graph, preferred);
  ExpansionChoice paths;
  for (NodeId n : expanded.graph.nodes())
    if (open(assignment, n)) paths.insert(expanded.paths[n.value]);
  return paths;
}

/// The expansions that were worth it: something below found a backend.
ExpansionChoice useful(const ExpandedGraph& expanded, const Assignment& assignment) {
  ExpansionChoice keep;
  for (NodeId n : expanded.graph.nodes()) {
    if (!assignment.taken(n)) continue;
    ExpansionPath parent = expanded.paths[n.value];
    for (parent.pop_back(); !parent.empty(); parent.pop_back()) keep.insert(parent);
  }
  return keep;
}

/// Asks all backends but the last, expanding what they refuse until nothing more is to be had that way.
Assigned assign_preferred(ir::Graph graph, const PartitionRequest& request) {
  const std::size_t preferred = request.backends.size() - 1;
  const auto backends = request.backends.first(preferred);
  Assignment assignment = unassigned(graph);
  ask_backends(assignment, graph, request, 0, preferred, false);
  const bool asks_again = std::ranges::any_of(backends, [](BackendInstance* b) { return !b->has(TENON_ASK_ONCE); });
  const Open open(graph, backends);
  if (!asks_again || std::ranges::none_of(graph.nodes(), [&](NodeId n) { return open(assignment, n); })) return {std::move(graph), std::move(assignment)};

  ExpandedGraph expanded = expand(graph, {});
  const Assignment first = assignment;
  for (;;) {
    ExpansionChoice choice = expanded.done;
    choice.merge(untaken(expanded, assignment, backends));
    if (choice.size() == expanded.done.size()) break;
    ExpandedGraph deeper = expand(graph, choice);
    if (deeper.done.size() == expanded.done.size()) break;
    expanded = std::move(deeper);
    assignment = unassigned(expanded.graph);
    ask_backends(assignment, expanded.graph, request, 0, preferred, true);
  }
  if (expanded.done.empty()) return {std::move(graph), first};
  const ExpansionChoice keep = useful(expanded, assignment);
  if (keep.empty()) return {std::move(graph), first};
  if (keep.size() != expanded.done.size()) {
    expanded = expand(graph, keep);
    assignment = unassigned(expanded.graph);
    ask_backends(assignment, expanded.graph, request, 0, preferred, true);
  }
  return {std::move(expanded.graph), std::move(assignment)};
}

std::string words_of(const std::vector<std::string>& refusals) {
  std::string words;
  for (const std::string& refusal : refusals) words += (words.empty() ? "" : "; ") + refusal;
  return words.empty() ? "no reason given" : words;
}

/// Says how many nodes each backend claims.
void tell_claims(const Assigned& assigned, const PartitionRequest& request) {
  std::map<std::uint32_t, int> nodes;
  for (NodeId n : assigned.graph.nodes())
    if (assigned.assignment.taken(n)) ++nodes[assigned.assignment.backend_of[assigned.assignment.group_of[n.value]]];
  nodes.erase(Assignment::kHost);
  nodes.erase(Assignment::kCopy);
  for (const auto& [backend, count] : nodes)
    request.events.emit({{"kind", "claim"}, {"phase", "claim"}, {"backend", request.backends[backend]->name()}, {"nodes", count}});
}

bool is_control(const ir::Node& node) {
  const ops::Op* op = ops::find_op(node.op);
  return op && op->traits.control;
}

/// Says of nodes that run elsewhere than their first choice how many of each op there are, where, and why.
void tell_fallback(const Assigned& assigned, const PartitionRequest& request, const std::string& backend, const std::map<std::string, std::pair<int, NodeId>>& by_op, const std::string& where) {
  for (const auto& [op, found] : by_op) {
    const auto refusals = assigned.assignment.refusals.find(found.second);
    request.events.emit({{"kind", "fallback"}, {"phase", "claim"}, {"backend", backend}, {"op", op}, {"nodes", found.first},
                         {"text", fmt::format("{} node{} of {} run {}: {}", found.first, found.first == 1 ? "" : "s", op, where,
                                              refusals == assigned.assignment.refusals.end() ? "nobody else claims them" : words_of(refusals->second))}});
  }
}

/// Says which ops the last backend takes because nobody else did.
void tell_fallbacks(const Assigned& assigned, const PartitionRequest& request) {
  std::map<std::string, std::pair<int, NodeId>> by_op;
  const TenonBackend& last = request.backends.back()->table();
  for (NodeId n : assigned.graph.nodes()) {
    const ir::Node& node = assigned.graph.node(n);
    if (assigned.assignment.taken(n) || reads_constant(node) || is_control(node) || unserved_device(last, assigned.graph, node)) continue;
    ++by_op.try_emplace(node.op, 0, n).first->second.first;
  }
  const std::string& name = request.backends.back()->name();
  tell_fallback(assigned, request, name, by_op, fmt::format("on '{}'", name));
}

/// Says who runs what a backend has refused for its cost.
void tell_prices(const Assigned& assigned, const PartitionRequest& request) {
  std::map<std::uint32_t, std::map<std::string, std::pair<int, NodeId>>> by_backend;
  for (const auto& [n, refused] : assigned.assignment.at_a_price) {
    const std::uint32_t taker = assigned.assignment.taken(n) ? assigned.assignment.backend_of[assigned.assignment.group_of[n.value]] : Assignment::kNobody;
    if (taker < request.backends.size()) ++by_backend[taker].try_emplace(assigned.graph.node(n).op, 0, n).first->second.first;
  }
  for (const auto& [taker, by_op] : by_backend) tell_fallback(assigned, request, request.backends[taker]->name(), by_op, fmt::format("on '{}'", request.backends[taker]->name()));
}

void give(Assignment& assignment, NodeId n, std::uint32_t backend) {
  assignment.group_of[n.value] = static_cast<std::uint32_t>(assignment.backend_of.size());
  assignment.backend_of.push_back(backend);
  assignment.constants_of.emplace_back();
}

/// Gives the nodes of control that nobody wants, and copies between devices, to the host, each as a group of its own.
void leave_to_host(Assigned& assigned) {
  Assignment& assignment = assigned.assignment;
  for (NodeId n : assigned.graph.nodes()) {
    if (assignment.taken(n)) continue;
    const ir::Node& node = assigned.graph.node(n);
    const bool copy = copies_between_devices(assigned.graph, node);
    if (copy || is_control(node)) give(assignment, n, copy ? Assignment::kCopy : Assignment::kHost);
  }
}

/// Gives what nobody wants to the backend that has code for it and refused it as slow.
void leave_to_slow(Assigned& assigned) {
  for (const auto& [n, backend] : assigned.assignment.at_a_price)
    if (!assigned.assignment.taken(n)) give(assigned.assignment, n, backend);
}

/// Brings what is left on devices to the host's memory, where the last backend takes it.
void leave_to_host_memory(Assigned& assigned, const PartitionRequest& request) {
  const TenonBackend& last = request.backends.back()->table();
  if (is_on_host(assigned.graph) || !serves(last, {})) return;
  std::map<std::string, std::pair<int, NodeId>> by_op;
  for (NodeId n : std::vector<NodeId>(assigned.graph.nodes().begin(), assigned.graph.nodes().end())) {
    const ir::Node& node = assigned.graph.node(n);
    if (assigned.assignment.taken(n) || reads_constant(node) || !unserved_device(last, assigned.graph, node) || !may_run_on_host(assigned.graph, node)) continue;
    ++by_op.try_emplace(node.op, 0, n).first->second.first;
    bring_to_host(assigned.graph, n);
  }
  if (by_op.empty()) return;
  assigned.assignment.group_of.resize(assigned.graph.node_capacity(), Assignment::kNobody);
  tell_fallback(assigned, request, request.backends.back()->name(), by_op, "in the host's memory, between copies");
  ask_backends(assigned.assignment, assigned.graph, request, request.backends.size() - 1, request.backends.size(), false);
}

/// "model.py:3: ", where the user's line is known.
std::string place_of(const ir::Node& node) { return node.location->line ? fmt::format("{}:{}: ", node.location->file, node.location->line) : ""; }

/// "the op add (node %y)".
std::string words_of(const ir::Graph& graph, const ir::Node& node) {
  return fmt::format("the op {} (node %{})", node.op, node.results.empty() ? "?" : graph.value(node.results[0]).name);
}

void check_all_taken(const Assigned& assigned) {
  for (NodeId n : assigned.graph.nodes()) {
    const ir::Node& node = assigned.graph.node(n);
    if (assigned.assignment.taken(n) || reads_constant(node)) continue;
    const auto refusals = assigned.assignment.refusals.find(n);
    throw Exception(Code::unsupported, fmt::format("{}no backend takes {}: {}", place_of(node), words_of(assigned.graph, node),
                                                   refusals == assigned.assignment.refusals.end() ? "nobody claims it" : words_of(refusals->second)));
  }
}

/// A node runs where its memory is: on a device that some backend serves, or nowhere.
void check_devices(const ir::Graph& graph, const PartitionRequest& request) {
  if (is_on_host(graph)) return;
  const auto served = [&](ir::Device device) {
    return device.is_host() || std::ranges::any_of(request.backends, [&](const BackendInstance* b) { return serves(b->table(), device); });
  };
  const auto refuse = [&](const std::string& place, ir::Device device, const std::string& of) {
    std::string there;
    for (const BackendInstance* b : request.backends) there += fmt::format("{}'{}' for {}", there.empty() ? "" : ", ", b->name(), devices_text(b->table()));
    throw Exception(Code::unsupported, fmt::format("{}no backend serves {}, the device of {}; loaded: {}", place, request.devices.name_of(ir::dlpack_device(device)), of, there));
  };
  for (NodeId n : graph.nodes()) {
    const ir::Node& node = graph.node(n);
    if (const auto nowhere = find_device(graph, node, [&](ir::Device device) { return !served(device); })) refuse(place_of(node), *nowhere, words_of(graph, node));
  }
  for (const ir::Output& output : graph.outputs())  // an input that is handed on is copied there, too
    if (const ir::Device device = graph.type(output.value).device; !served(device)) refuse("", device, fmt::format("the output %{}", graph.value(output.value).name));
}

/// By NodeId: how many sizes that become known only while running a node waits for, one after the other. Nodes of one group must
/// agree, so that the sizes are known before the group runs.
std::vector<std::uint32_t> phases_of(const ir::Graph& graph, const std::vector<NodeId>& definers) {
  std::vector<std::uint32_t> phase(graph.node_capacity(), 0);
  if (std::none_of(definers.begin(), definers.end(), [](NodeId n) { return static_cast<bool>(n); })) return phase;
  for (NodeId n : graph.nodes()) {
    std::uint32_t& mine = phase[n.value];
    for (ValueId v : graph.node(n).operands)
      if (graph.value(v).kind == ir::ValueKind::result) mine = std::max(mine, phase[graph.value(v).node.value]);
    visit_symbols(graph, graph.node(n), [&](SymbolId s) {
      if (definers[s.value] && definers[s.value] != n) mine = std::max(mine, phase[definers[s.value].value] + 1);
    });
  }
  return phase;
}

/// The groups in terms of positions among the nodes that compute, and what depends on what.
class Grouping {
 public:
  explicit Grouping(const Assigned& assigned) : assigned_(assigned), definers_(defining_nodes(assigned.graph)) {
    position_.resize(assigned.graph.node_capacity());
    for (NodeId n : assigned.graph.nodes()) {
      if (reads_constant(assigned.graph.node(n))) continue;
      position_[n.value] = static_cast<std::uint32_t>(nodes_.size());
      nodes_.push_back(n);
    }
    find_dependences();
    find_groups();
  }

  std::vector<PlannedGroup> in_order(const PartitionRequest& request) const {
    const ConvexGroups convex = make_convex(dependences_, groups_);
    for (std::uint32_t split : convex.split) tell_split(request, split);
    std::vector<PlannedGroup> planned;
    for (std::size_t g = 0; g < convex.groups.size(); ++g) {
      const std::uint32_t origin = convex.origins[g];
      PlannedGroup group{{}, backends_[origin], assigned_.assignment.constants_of[claims_[origin]]};
      for (std::uint32_t position : convex.groups[g]) group.nodes.push_back(nodes_[position]);
      planned.push_back(std::move(group));
    }
    end_with_updates(planned);
    order_by_memory(assigned_.graph, request.expected_sizes, planned);
    return planned;
  }

 private:
  /// The last group may write its updates over the inputs. Let it be one of a device, if none needs it: there memory beside them and copies cost most.
  void end_with_updates(std::vector<PlannedGroup>& planned) const {
    std::vector<std::int64_t> updates(nodes_.size(), 0);  // on devices, by position
    for (const ir::Output& output : assigned_.graph.outputs()) {
      const ir::Value& value = assigned_.graph.value(output.value);
      if (output.kind == ir::OutputKind::update && value.kind == ir::ValueKind::result && !assigned_.graph.type(output.value).device.is_host()) ++updates[position_[value.node.value]];
    }
    const auto count = [&](const PlannedGroup& group) {
      std::int64_t all = 0;
      for (const NodeId n : group.nodes) all += updates[position_[n.value]];
      return all;
    };
    const auto most = std::ranges::max_element(planned, {}, count);
    if (most == planned.end() || count(*most) == 0) return;
    std::vector<bool> within(nodes_.size());
    for (const NodeId n : most->nodes) within[position_[n.value]] = true;
    const auto stays_within = [&](NodeId n) { return std::ranges::all_of(dependences_[position_[n.value]], [&](std::uint32_t next) { return within[next]; }); };
    if (std::ranges::all_of(most->nodes, stays_within)) std::rotate(most, most + 1, planned.end());
  }

  void find_dependences() {
    const ir::Graph& graph = assigned_.graph;
    dependences_.resize(nodes_.size());
    for (NodeId n : nodes_) {
      const auto needs = [&](NodeId before) {
        if (before && before != n && !reads_constant(graph.node(before))) dependences_[position_[before.value]].push_back(position_[n.value]);
      };
      for (ValueId v : graph.node(n).operands) needs(graph.value(v).node);
      if (!definers_.empty()) visit_symbols(graph, graph.node(n), [&](SymbolId s) { needs(definers_[s.value]); });
    }
  }

  void find_groups() {
    const std::vector<std::uint32_t> phases = phases_of(assigned_.graph, definers_);
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> number;  // claimed group and phase
    for (NodeId n : nodes_) {
      const std::uint32_t claimed = assigned_.assignment.group_of[n.value];
      const auto [place, fresh] = number.try_emplace({claimed, phases[n.value]}, groups_.size());
      if (fresh) {
        groups_.emplace_back();
        const std::uint32_t backend = assigned_.assignment.backend_of[claimed];
        backends_.push_back(backend == Assignment::kHost ? kByHost : backend == Assignment::kCopy ? kCopiedByHost : backend);
        claims_.push_back(claimed);
      }
      groups_[place->second].push_back(position_[n.value]);
    }
  }

  void tell_split(const PartitionRequest& request, std::uint32_t group) const {
    const std::string& backend = request.backends[backends_[group]]->name();
    const bool fallback = backends_[group] + 1 == request.backends.size();  // takes what is left, in whatever shape that is
    if (fallback) return;
    const NodeId first = nodes_[groups_[group].front()];
    request.events.emit({{"kind", "claim_split"}, {"phase", "claim"}, {"backend", backend}, {"nodes", groups_[group].size()},
                         {"text", fmt::format("backend '{}' claims a group of {} nodes (first: {}) that nodes of others run through; it was split", backend,
                                              groups_[group].size(), assigned_.graph.node(first).op)}});
  }

  const Assigned& assigned_;
  std::vector<NodeId> definers_;          // by SymbolId
  std::vector<NodeId> nodes_;             // by position
  std::vector<std::uint32_t> position_;   // by NodeId
  Dependences dependences_;
  std::vector<NodeGroup> groups_;
  std::vector<std::size_t> backends_;     // by group
  std::vector<std::uint32_t> claims_;     // by group: the claim that it is of
};

/// Where groups of devices find more to compute, their backends are asked which nodes go together now.
void keep_less_between_groups(Assigned& assigned, const PartitionRequest& request) {
  const auto asks_once = [](BackendInstance* b) { return b->has(TENON_ASK_ONCE); };
  if (is_on_host(assigned.graph) || std::ranges::any_of(request.backends, asks_once)) return;
  if (!compute_again_in_later_groups(assigned.graph, assigned.assignment, request.expected_sizes)) return;
  assigned.assignment = unassigned(assigned.graph);
  ask_backends(assigned.assignment, assigned.graph, request, 0, request.backends.size() - 1, false);
}

}  // namespace

Partition partition(ir::Graph graph, const PartitionRequest& request) {
  check_devices(graph, request);
  Assigned assigned = assign_preferred(std::move(graph), request);
  keep_less_between_groups(assigned, request);
  if (request.backends.size() > 1) tell_fallbacks(assigned, request);
  ask_backends(assigned.assignment, assigned.graph, request, request.backends.size() - 1, request.backends.size(), false);
  leave_to_slow(assigned);
  leave_to_host_memory(assigned, request);
  leave_to_host(assigned);
  check_all_taken(assigned);
  tell_claims(assigned, request);
  tell_prices(assigned, request);
  std::vector<PlannedGroup> groups = Grouping(assigned).in_order(request);
  return {std::move(assigned.graph), std::move(groups)};
}

}  // namespace tenon::host
