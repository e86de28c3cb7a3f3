#include "core/rewrite/differentiate.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "core/base/error.h"
#include "core/ops/build/complex_moves.h"
#include "core/ops/build/node_builder.h"
#include "core/ops/gradients/flat.h"
#include "core/ops/gradients/gradient.h"
#include "core/ops/gradients/own_gradients.h"
#include "core/rewrite/never_chosen.h"
#include "core/rewrite/shared_nodes.h"

namespace tenon::rewrite {
namespace {

using ir::NodeId;
using ir::ValueId;

/// Whether a gradient can flow through a value: what is counted, compared or chosen has none.
bool carries(const ir::Graph& graph, ValueId v) {
  const DType t = graph.type(v).dtype;
  return graph.value(v).kind != ir::ValueKind::literal && (is_float(t) || is_complex(t));
}

/// Which values depend on a wanted one, and which nodes lie between those and other values.
class Path {
 public:
  Path(const ir::Graph& graph, std::span<const ValueId> values, std::span<const ValueId> wanted, const Stops& stops)
      : depends_(graph.value_capacity()), nodes_(graph.nodes().begin(), graph.nodes().end()) {
    for (ValueId v : wanted) depends_[v.value] = true;
    std::erase_if(nodes_, [&](NodeId id) { return !reached(graph, id, stops); });
    std::vector<bool> needed(graph.value_capacity());
    for (ValueId v : values) needed[v.value] = true;
    std::vector<NodeId> between;
    for (std::size_t i = nodes_.size(); i-- > 0;) {
      const ir::Node& node = graph.node(nodes_[i]);
      if (std::ranges::none_of(node.results, [&](ValueId r) { return needed[r.value] && depends_[r.value]; })) continue;
      between.push_back(nodes_[i]);
      for (ValueId v : node.operands)
        if (depends_[v.value]) needed[v.value] = true;
    }
    nodes_ = std::move(between);
  }

  bool depends(ValueId v) const { return v.value < depends_.size() && depends_[v.value]; }
  /// The last first.
  std::span<const NodeId> nodes() const { return nodes_; }

 private:
  bool reached(const ir::Graph& graph, NodeId id, const Stops& stops) {
    const ir::Node& node = graph.node(id);
    if (std::ranges::none_of(node.operands, [&](ValueId v) { return depends_[v.value] && carries(graph, v); })) return false;
    if (node.op == "detach" || (stops && stops(id))) return false;
    for (ValueId r : node.results) depends_[r.value] = depends_[r.value] || carries(graph, r);
    return true;
  }

  std::vector<bool> depends_;
  std::vector<NodeId> nodes_;
};

/// One call of `differentiate`.
class Differentiation {
 public:
  Differentiation(ir::Graph& graph, std::span<const Seed> seeds, std::span<const ValueId> wanted, const Stops& stops, const ops::Moved& moved, const Visited& visited, bool for_more)
      : graph_(graph), builder_(graph), seeds_(seeds.begin(), seeds.end()), wanted_(wanted.begin(), wanted.end()), stops_(stops), moved_(moved), visited_(visited), for_more_(for_more) {}

  std::vector<std::optional<ValueId>> run() {
    expand_between(graph_, ends(), wanted_, stops_, [this](ValueId from, ValueId to) { replace(from, to); });
    const Path path(graph_, ends(), wanted_, stops_);
    for (const Seed& seed : seeds_)
      if (path.depends(seed.of)) give(seed.of, seed.adjoint);
    for (NodeId id : path.nodes()) visit(id, path);
    std::vector<std::optional<ValueId>> gradients;
    for (ValueId v : wanted_) gradients.push_back(adjoint(v));
    return gradients;
  }

 private:
  std::vector<ValueId> ends() const {
    std::vector<ValueId> values;
    for (const Seed& s : seeds_) values.push_back(s.of);
    return values;
  }

  void replace(ValueId from, ValueId to) {
    for (Seed& s : seeds_)
      if (s.of == from) s.of = to;
    std::ranges::replace(wanted_, from, to);
    if (moved_) moved_(from, to);
  }

  void visit(NodeId id, const Path& path) {
    const ir::Node node = graph_.node(id);
    std::vector<std::optional<ValueId>> given;
    for (ValueId result : node.results) given.push_back(adjoint(result));
    if (std::ranges::none_of(given, [](const auto& g) { return g.has_value(); })) return;
    builder_.at(node.location);
    const std::size_t known = graph_.value_capacity(), first = graph_.nodes().size();
    std::vector<std::optional<ValueId>> handed = ops::is_own_gradient(node) ? own(node, given) : ops::node_gradients(builder_, id, given);
    if (for_more_ && handed.front() && path.depends(node.operands.front()) && ops::has_flat_gradient(node.op))
      handed.front() = never_chosen(builder_, node.operands.front(), *handed.front());
    if (visited_) visited_(id, need_any_of(node, handed, known));
    for (std::size_t k = 0; k < handed.size(); ++k)
      if (handed[k] && path.depends(node.operands[k])) give(node.operands[k], *handed[k]);
    for (NodeId made : graph_.nodes().subspan(first))
      if (!ops::only_moves_complex(graph_, made)) throw Exception(error(Code::unsupported, "{} has no gradient: it has to do with complex numbers", node.op));
  }

  std::vector<std::optional<ValueId>> own(const ir::Node& node, std::span<const std::optional<ValueId>> given) {
    std::vector<ValueId> by_result;
    for (const std::optional<ValueId>& gradient : given) by_result.push_back(gradient.value_or(ValueId()));
    std::vector<std::optional<ValueId>> handed;
    for (ValueId v : ops::own_gradients(builder_, ops::OwnGradientParts::of(node), node.results, by_result, for_more_)) handed.push_back(v ? std::optional(v) : std::nullopt);
    return handed;
  }

  /// Whether gradients are computed from operands or results of the node. Values from the number `known` on were made for them.
  bool need_any_of(const ir::Node& node, std::span<const std::optional<ValueId>> gradients, std::size_t known) const {
    if (ops::is_own_gradient(node)) return std::get<bool>(*node.attribute("keeps"));
    std::vector<ValueId> left;
    for (const std::optional<ValueId>& gradient : gradients)
      if (gradient) left.push_back(*gradient);
    std::vector<bool> seen(graph_.value_capacity());
    while (!left.empty()) {
      const ValueId v = left.back();
      left.pop_back();
      if (graph_.value(v).kind == ir::ValueKind::literal) continue;
      if (std::ranges::find(node.operands, v) != node.operands.end() || std::ranges::find(node.results, v) != node.results.end()) return true;
      if (v.value < known || seen[v.value] || graph_.value(v).kind != ir::ValueKind::result) continue;
      seen[v.value] = true;
      std::ranges::copy(graph_.node(graph_.value(v).node).operands, std::back_inserter(left));
    }
    return false;
  }

  std::optional<ValueId> adjoint(ValueId v) const {
    const auto found = adjoints_.find(v.value);
    return found == adjoints_.end() ? std::nullopt : std::optional(found->second);
  }

  void give(ValueId value, ValueId adjoint) {
    const auto [at, first] = adjoints_.try_emplace(value.value, adjoint);
    if (first) return;
    builder_.on(graph_.type(value).device);
    at->second = sum(at->second, adjoint);
  }

  /// The gradient of a complex number is that by its real part, and i times that by its imaginary one.
  ValueId sum(ValueId a, ValueId b) {
    if (!is_complex(graph_.type(a).dtype)) return builder_.one("add", {a, b});
    const auto part = [&](const char* name) { return builder_.one("add", {builder_.one(name, {a}), builder_.one(name, {b})}); };
    const ValueId real = part("real");
    return builder_.one("complex", {real, part("imag")});
  }

  ir::Graph& graph_;
  ops::NodeBuilder builder_;
  std::vector<Seed> seeds_;
  std::vector<ValueId> wanted_;
  const Stops& stops_;
  const ops::Moved& moved_;
  const Visited& visited_;
  const bool for_more_;
  std::unordered_map<std::uint32_t, ValueId> adjoints_;
};

}  // namespace

std::vector<bool> depending_on(const ir::Graph& graph, std::span<const ValueId> values, std::span<const ValueId> but_by) {
  std::vector<bool> depends(graph.value_capacity());
  for (ValueId v : values) depends[v.value] = true;
  for (NodeId id : graph.nodes()) {
    const ir::Node& node = graph.node(id);
    if (node.op == "detach" || std::ranges::none_of(node.operands, [&](ValueId v) { return depends[v.value]; })) continue;
    for (ValueId r : node.results)
      depends[r.value] = (is_float(graph.type(r).dtype) || is_complex(graph.type(r).dtype)) && std::ranges::find(but_by, r) == but_by.end();
  }
  return depends;
}

namespace {

/// Whether a node computes what another one does: then torch reads that one's result.
bool is_again(const ir::Node& node, const ir::Node& first) {
  return node.op == first.op && !is_computed_anew(node) && node.operands == first.operands && node.attributes == first.attributes;
}

}  // namespace

bool gradient_reads(ir::Graph& graph, NodeId id, ValueId value, const std::vector<bool>& may_have) {
  const std::size_t first = graph.nodes().size(), known = graph.value_capacity();
  const std::vector<ValueId> operands = graph.node(id).operands;
  ops::NodeBuilder builder(graph);
  bool reads = false;
  try {
    std::vector<std::optional<ValueId>> given;
    for (ValueId r : std::vector<ValueId>(graph.node(id).results)) {
      const ir::Type type = graph.type(r);
      builder.on(type.device);
      given.push_back(is_float(type.dtype) ? std::optional(builder.one("full", {builder.literal(0.0)}, {{"dtype", type.dtype}, {"size", type.shape}})) : std::nullopt);
    }
    const auto handed = ops::node_gradients(builder, id, given);
    std::vector<ValueId> left;
    for (std::size_t k = 0; k < handed.size(); ++k)
      if (handed[k] && operands[k].value < may_have.size() && may_have[operands[k].value]) left.push_back(*handed[k]);
    std::vector<bool> seen(graph.value_capacity());
    while (!left.empty() && !reads) {
      const ValueId v = left.back();
      left.pop_back();
      reads = v == value;
      if (v.value < known || seen[v.value] || graph.value(v).kind != ir::ValueKind::result) continue;
      seen[v.value] = true;
      const ir::Node& made = graph.node(graph.value(v).node);
      if (is_again(made, graph.node(id))) left.push_back(graph.node(id).results[0]);
      else std::ranges::copy(made.operands, std::back_inserter(left));
    }
  } catch (const Exception&) {
  }  // it has no gradient, which whoever asks for it is told
  graph.erase_nodes(std::vector<NodeId>(graph.nodes().begin() + static_cast<std::ptrdiff_t>(first), graph.nodes().end()));
  return reads;
}

std::vector<NodeId> nodes_between(const ir::Graph& graph, std::span<const ValueId> values, std::span<const ValueId> wanted, const Stops& stops) {
  const Path path(graph, values, wanted, stops);
  return {path.nodes().begin(), path.nodes().end()};
}

void expand_between(ir::Graph& graph, std::vector<ValueId> values, std::vector<ValueId> wanted, const Stops& stops, const ops::Moved& moved) {
  const auto replace = [&](ValueId from, ValueId to) {
    std::ranges::replace(values, from, to);
    std::ranges::replace(wanted, from, to);
    if (moved) moved(from, to);
  };
  for (bool again = true; again;) {
    again = false;
    for (NodeId id : nodes_between(graph, values, wanted, stops))
      if (ops::is_differentiated_in_parts(graph, graph.node(id))) again = ops::expand_node(graph, id, replace) || again;
  }
}

void expand_last(ir::Graph& graph, std::size_t first_node, const ops::Moved& moved) {
  for (bool again = true; again;) {
    again = false;
    const std::vector<NodeId> last(graph.nodes().begin() + static_cast<std::ptrdiff_t>(first_node), graph.nodes().end());
    for (NodeId id : last)
      if (ops::is_differentiated_in_parts(graph, graph.node(id))) again = ops::expand_node(graph, id, moved) || again;
  }
}

std::vector<std::optional<ValueId>> differentiate(ir::Graph& graph, std::span<const Seed> seeds, std::span<const ValueId> wanted, const Stops& stops,
                                                  const ops::Moved& moved, const Visited& visited, bool for_more) {
  return Differentiation(graph, seeds, wanted, stops, moved, visited, for_more).run();
}

}  // namespace tenon::rewrite
