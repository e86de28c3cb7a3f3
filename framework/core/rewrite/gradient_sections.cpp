#include "core/rewrite/gradient_sections.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "core/base/error.h"
#include "core/ops/gradients/own_gradients.h"
#include "core/rewrite/id_set.h"

namespace tenon::rewrite {
namespace {

using ir::NodeId;
using ir::ValueId;

/// The nodes whose gradients are computed from their operands or results, or are larger than what they are computed from. Others may as well be gone
/// through by several sections.
IdSet<NodeId> nodes_that_keep(const ir::Graph& graph, std::span<const ValueId> results, std::span<const ValueId> wanted) {
  IdSet<NodeId> keep;
  ir::Graph joint = graph.clone();
  std::vector<Seed> seeds;
  for (ValueId v : results) {
    const ir::Type type = joint.type(v);
    seeds.push_back({v, joint.add_input(ir::Type::tensor(type.dtype, type.shape, type.device))});
  }
  const auto count_of = [&](ValueId v) {
    std::int64_t count = 1;
    for (const ir::Dim& d : graph.type(v).shape) count *= d.is_constant() ? d.constant() : std::numeric_limits<std::int32_t>::max();
    return count;
  };
  const auto grows = [&](const ir::Node& node) {
    return node.results.size() != 1 || std::ranges::any_of(node.operands, [&](ValueId v) {
      return graph.value(v).kind != ir::ValueKind::literal && graph.type(v).shape != graph.type(node.results[0]).shape && count_of(v) >= count_of(node.results[0]);
    });
  };
  differentiate(joint, seeds, wanted, stops_at(graph, wanted), {}, [&](NodeId id, bool reads) {
    if (reads || grows(graph.node(id))) keep.insert(id);
  });
  return keep;
}

/// Groups of items: each joins those that share a key with it.
class Groups {
 public:
  explicit Groups(std::size_t count) : group_(count) { std::iota(group_.begin(), group_.end(), std::size_t{0}); }

  void add(std::size_t item, NodeId key) {
    const std::size_t other = group_[first_.try_emplace(key, item).first->second], mine = group_[item];
    std::ranges::replace(group_, other, mine);
  }
  std::vector<std::vector<std::size_t>> all() const {
    std::vector<std::vector<std::size_t>> groups;
    for (std::size_t g = 0; g < group_.size(); ++g) {
      std::vector<std::size_t> members;
      for (std::size_t i = 0; i < group_.size(); ++i)
        if (group_[i] == g) members.push_back(i);
      if (!members.empty()) groups.push_back(std::move(members));
    }
    return groups;
  }

 private:
  std::vector<std::size_t> group_;
  std::unordered_map<NodeId, std::size_t> first_;
};

class Sections {
 public:
  Sections(const ir::Graph& graph, std::span<const ValueId> results, std::span<const ValueId> wanted, std::span<const ViewedResult> views)
      : graph_(graph), all_results_(results), views_(views), keep_(nodes_that_keep(graph, results, wanted)), nodes_(nodes_between(graph, results, wanted, stops_at(graph, wanted))) {
    for (NodeId id : nodes_) between_.insert(id);
    for (ValueId v : results) results_.insert(v), ends_.insert(v);
    for (const ViewedResult& view : views) ends_.insert(view.value);
    for (std::size_t i = nodes_.size(); i-- > 0;) find_depth(nodes_[i]);
    for (NodeId id : nodes_) find_level(id);
  }

  /// A section has results of one depth, none of which depends on another.
  std::vector<GradientSection> all() {
    std::size_t levels = 1;
    for (ValueId v : all_results_) levels = std::max(levels, depth_of(v) + 1);
    handed_.resize(levels);
    std::vector<GradientSection> sections;
    for (std::size_t level = levels; level-- > 0;) {  // what a level is handed is known once those behind it are
      std::vector<GradientSection> of_level = sections_of(level);
      sections.insert(sections.begin(), std::move_iterator(of_level.begin()), std::move_iterator(of_level.end()));
    }
    return sections;
  }

 private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  bool is_computed(ValueId v) const { return graph_.value(v).kind == ir::ValueKind::result && between_.has(graph_.value(v).node); }

  /// How many results lie one behind the other on the way to a result.
  std::size_t depth_of(ValueId result) const { return is_computed(result) ? depth_.at(graph_.value(result).node) : 0; }

  /// The depth of a node that reads nothing else.
  std::size_t depth_behind(ValueId v) const {
    if (results_.has(v)) return depth_of(v) + 1;
    if (ends_.has(v)) {
      const ViewedResult& view = *std::ranges::find(views_, v, &ViewedResult::value);
      return view.of ? depth_of(*view.of) + 1 : 0;
    }
    return depth_of(v);
  }

  void find_depth(NodeId id) {
    std::size_t depth = 0;
    for (ValueId v : graph_.node(id).operands) depth = std::max(depth, depth_behind(v));
    depth_[id] = depth;
    level_[id] = kNone;
  }

  /// A node belongs to the first level that reads it. All nodes that do have been seen.
  void find_level(NodeId id) {
    std::size_t& level = level_.at(id);
    for (ValueId v : graph_.node(id).results)
      if (results_.has(v)) level = std::min(level, depth_.at(id));
    for (ValueId v : graph_.node(id).operands) {
      if (!is_computed(v) || ends_.has(v)) continue;
      std::size_t& before = level_.at(graph_.value(v).node);
      before = std::min(before, level);
    }
  }

  std::vector<GradientSection> sections_of(std::size_t level) {
    std::vector<ValueId> roots;
    for (ValueId v : all_results_)
      if (depth_of(v) == level) roots.push_back(v);
    roots.insert(roots.end(), handed_[level].begin(), handed_[level].end());
    Groups groups(roots.size());
    std::vector<std::vector<ValueId>> sources(roots.size());
    for (std::size_t i = 0; i < roots.size(); ++i)
      for (NodeId id : walk(roots[i], level, sources[i]))
        if (keep_.has(id)) groups.add(i, id);
    std::vector<GradientSection> sections;
    for (const std::vector<std::size_t>& members : groups.all()) {
      GradientSection& section = sections.emplace_back();
      for (std::size_t i : members) {
        section.results.push_back(roots[i]);
        for (ValueId v : sources[i])
          if (std::ranges::find(section.sources, v) == section.sources.end()) section.sources.push_back(v);
      }
    }
    return sections;
  }

  /// The nodes between a value and what its gradients end at, which are sources where they lie inside the graph.
  std::vector<NodeId> walk(ValueId root, std::size_t level, std::vector<ValueId>& sources) {
    std::vector<NodeId> nodes;
    IdSet<NodeId> seen;
    const auto visit = [&](ValueId v) {
      if (is_computed(v) && seen.insert(graph_.value(v).node)) nodes.push_back(graph_.value(v).node);
    };
    visit(root);
    for (std::size_t at = 0; at < nodes.size(); ++at)
      for (ValueId v : graph_.node(nodes[at]).operands) {
        if (!is_computed(v)) continue;
        const NodeId from = graph_.value(v).node;
        const bool is_handed = !ends_.has(v) && keep_.has(from) && level_.at(from) < level;
        if (!ends_.has(v) && !is_handed) {
          visit(v);
          continue;
        }
        if (std::ranges::find(sources, v) == sources.end()) sources.push_back(v);
        std::vector<ValueId>& handed = handed_[is_handed ? level_.at(from) : level];
        if (is_handed && std::ranges::find(handed, v) == handed.end()) handed.push_back(v);
      }
    return nodes;
  }

  const ir::Graph& graph_;
  const std::span<const ValueId> all_results_;
  const std::span<const ViewedResult> views_;
  const IdSet<NodeId> keep_;
  const std::vector<NodeId> nodes_;  // the last first
  IdSet<NodeId> between_;
  IdSet<ValueId> results_, ends_;    // ends: results, and views that are made of them
  std::unordered_map<NodeId, std::size_t> depth_, level_;
  std::vector<std::vector<ValueId>> handed_;  // by level: what later ones read of what its nodes keep for themselves
};

}  // namespace

std::vector<GradientSection> gradient_sections(const ir::Graph& graph, std::span<const ValueId> results, std::span<const ValueId> wanted, std::span<const ViewedResult> views) {
  if (results.size() == 1 && views.empty()) return {{{results[0]}, {}}};
  return Sections(graph, results, wanted, views).all();
}

std::vector<ValueId> given_zeros(const ir::Graph& graph, std::span<const ValueId> results, std::span<const ValueId> wanted) {
  using Absent = ops::OwnGradientParts::Absent;
  std::vector<ValueId> begun;
  for (NodeId id : nodes_between(graph, results, wanted, stops_at(graph, wanted))) {
    const ir::Node& node = graph.node(id);
    const Absent absent = ops::is_own_gradient(node) ? ops::OwnGradientParts::of(node).absent : Absent::none;
    if (absent == Absent::unknown)
      throw Exception(error(Code::unsupported, "no result has a gradient, and what a torch.autograd.Function that asks for no zeros makes of that, only it knows: leave it to torch"));
    if (absent == Absent::zeros) begun.push_back(node.results[0]);
  }
  return begun;
}

Stops stops_at(const ir::Graph& graph, std::span<const ValueId> values) {
  IdSet<NodeId> stopped;
  for (ValueId v : values)
    if (graph.value(v).kind == ir::ValueKind::result) stopped.insert(graph.value(v).node);
  return [stopped = std::move(stopped)](NodeId id) { return stopped.has(id); };
}

}  // namespace tenon::rewrite
