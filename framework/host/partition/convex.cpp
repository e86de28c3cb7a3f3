#include "host/partition/convex.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/strong_components.hpp>
#include <functional>
#include <map>
#include <queue>

namespace tenon::host {
namespace {

using Quotient = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS>;

struct Work {
  const Dependences& dependences;
  std::vector<NodeGroup> groups;
  std::vector<std::uint32_t> origins;
  std::vector<std::uint32_t> group_of;  // by node
};

/// The graph whose vertices are the groups.
Quotient quotient_of(const Work& work) {
  Quotient quotient(work.groups.size());
  for (std::uint32_t n = 0; n < work.dependences.size(); ++n)
    for (std::uint32_t next : work.dependences[n])
      if (work.group_of[n] != work.group_of[next]) boost::add_edge(work.group_of[n], work.group_of[next], quotient);
  return quotient;
}

/// The groups of each strongly connected component with more than one group: those that cannot be put in an order.
std::vector<std::vector<std::uint32_t>> cycles_of(const Work& work) {
  const Quotient quotient = quotient_of(work);
  std::vector<std::uint32_t> component(work.groups.size());
  const std::size_t count = boost::strong_components(quotient, boost::make_iterator_property_map(component.begin(), boost::get(boost::vertex_index, quotient)));
  std::vector<std::vector<std::uint32_t>> members(count);
  for (std::uint32_t g = 0; g < work.groups.size(); ++g) members[component[g]].push_back(g);
  std::erase_if(members, [](const auto& m) { return m.size() < 2; });
  return members;
}

/// The level of each node of a cycle with regard to `group`: how many times a path to it has left the group. Nodes of the group with
/// one level can run together; what is outside of the cycle does not matter. Groups in `fixed` count as one vertex.
class Levels {
 public:
  Levels(const Work& work, const std::vector<std::uint32_t>& cycle, std::uint32_t group, const std::vector<bool>& fixed)
      : work_(work), group_(group), fixed_(fixed), in_cycle_(work.groups.size(), false), level_(work.dependences.size(), 0) {
    for (std::uint32_t g : cycle) {
      in_cycle_[g] = true;
      for (std::uint32_t n : work.groups[g]) nodes_.push_back(n);
    }
    std::sort(nodes_.begin(), nodes_.end());
    relax();
  }

  std::uint32_t of(std::uint32_t node) const { return level_[node]; }

 private:
  /// Raises levels along edges until nothing changes. One sweep is enough without fixed groups, since nodes are in topological order;
  /// a fixed group lifts all its nodes together, which may ask for another sweep.
  void relax() {
    for (bool changed = true; changed;) {
      changed = false;
      for (std::uint32_t n : nodes_)
        for (std::uint32_t next : work_.dependences[n]) changed |= raise(n, next);
      changed &= lift_fixed();
    }
  }

  bool raise(std::uint32_t from, std::uint32_t to) {
    const std::uint32_t g = work_.group_of[to];
    if (!in_cycle_[g]) return false;
    const bool leaves = work_.group_of[from] == group_ && g != group_;
    const std::uint32_t level = level_[from] + (leaves ? 1 : 0);
    if (level <= level_[to]) return false;
    level_[to] = level;
    return true;
  }

  bool lift_fixed() {
    std::map<std::uint32_t, std::uint32_t> highest;
    for (std::uint32_t n : nodes_)
      if (fixed_[work_.group_of[n]]) highest[work_.group_of[n]] = std::max(highest[work_.group_of[n]], level_[n]);
    bool lifted = false;
    for (std::uint32_t n : nodes_) {
      if (!fixed_[work_.group_of[n]] || level_[n] == highest[work_.group_of[n]]) continue;
      level_[n] = highest[work_.group_of[n]];
      lifted = true;
    }
    return lifted;
  }

  const Work& work_;
  std::uint32_t group_;
  const std::vector<bool>& fixed_;
  std::vector<bool> in_cycle_;
  std::vector<std::uint32_t> level_;
  std::vector<std::uint32_t> nodes_;
};

/// Cuts a group by levels; the first part keeps its number.
std::vector<std::uint32_t> cut_by_levels(Work& work, std::uint32_t group, const Levels& levels) {
  std::map<std::uint32_t, NodeGroup> parts;
  for (std::uint32_t n : work.groups[group]) parts[levels.of(n)].push_back(n);
  std::vector<std::uint32_t> numbers;
  for (auto& [level, nodes] : parts) {
    const std::uint32_t number = numbers.empty() ? group : static_cast<std::uint32_t>(work.groups.size());
    if (!numbers.empty()) {
      work.groups.emplace_back();
      work.origins.push_back(work.origins[group]);
    }
    for (std::uint32_t n : nodes) work.group_of[n] = number;
    work.groups[number] = std::move(nodes);
    numbers.push_back(number);
  }
  return numbers;
}

/// Orders the groups so that each comes after what it needs; among those that are ready the one with the lowest node is first.
std::vector<std::uint32_t> execution_order(const Work& work) {
  std::vector<std::uint32_t> waits(work.groups.size(), 0);
  const Quotient quotient = quotient_of(work);
  for (auto [edge, end] = boost::edges(quotient); edge != end; ++edge) ++waits[boost::target(*edge, quotient)];
  using Entry = std::pair<std::uint32_t, std::uint32_t>;  // lowest node, group
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  for (std::uint32_t g = 0; g < work.groups.size(); ++g)
    if (waits[g] == 0) ready.emplace(work.groups[g].front(), g);
  std::vector<std::uint32_t> order;
  while (!ready.empty()) {
    const std::uint32_t g = ready.top().second;
    ready.pop();
    order.push_back(g);
    for (auto [edge, end] = boost::out_edges(g, quotient); edge != end; ++edge)
      if (const auto next = static_cast<std::uint32_t>(boost::target(*edge, quotient)); --waits[next] == 0) ready.emplace(work.groups[next].front(), next);
  }
  return order;
}

}  // namespace

ConvexGroups make_convex(const Dependences& dependences, std::span<const NodeGroup> groups) {
  Work work{dependences, {}, {}, std::vector<std::uint32_t>(dependences.size(), 0)};
  ConvexGroups result;
  for (std::uint32_t g = 0; g < groups.size(); ++g) {
    if (groups[g].empty()) continue;
    for (std::uint32_t n : groups[g]) work.group_of[n] = static_cast<std::uint32_t>(work.groups.size());
    work.groups.push_back(groups[g]);
    std::sort(work.groups.back().begin(), work.groups.back().end());
    work.origins.push_back(g);
  }
  // Cutting one group of a cycle after the other, each against those that are already fixed, leaves no cycle: the parts of a group
  // run in the order of their levels, and no path leads from a higher level to a lower one.
  for (const std::vector<std::uint32_t>& cycle : cycles_of(work)) {
    std::vector<bool> fixed(work.groups.size(), false);
    std::vector<std::uint32_t> members = cycle;
    for (std::uint32_t g : cycle) {
      if (work.groups[g].size() > 1) {
        const Levels levels(work, members, g, fixed);
        const std::vector<std::uint32_t> parts = cut_by_levels(work, g, levels);
        if (parts.size() > 1) result.split.push_back(work.origins[g]);
        members.insert(members.end(), parts.begin() + 1, parts.end());
        fixed.resize(work.groups.size(), false);
        for (std::uint32_t part : parts) fixed[part] = true;
      }
    }
  }
  for (std::uint32_t g : execution_order(work)) {
    result.groups.push_back(work.groups[g]);
    result.origins.push_back(work.origins[g]);
  }
  return result;
}

}  // namespace tenon::host
