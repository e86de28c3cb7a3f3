#include "core/rewrite/kept_beginnings.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "core/ops/build/node_builder.h"
#include "core/rewrite/id_set.h"

namespace tenon::rewrite {
namespace {

using ir::Dim;
using ir::NodeId;
using ir::ValueId;

bool is_concatenation(const ir::Graph& graph, ValueId v) { return graph.value(v).kind == ir::ValueKind::result && graph.node(graph.value(v).node).op == "cat"; }

/// Whether the longer of two concatenations begins with all that the shorter one joins, and goes on.
bool begins(const ir::Graph& graph, ValueId shorter, ValueId longer) {
  const ir::Node &a = graph.node(graph.value(shorter).node), &b = graph.node(graph.value(longer).node);
  return a.operands.size() < b.operands.size() && a.attributes == b.attributes && graph.type(shorter).dtype == graph.type(longer).dtype &&
         std::equal(a.operands.begin(), a.operands.end(), b.operands.begin());
}

/// The longest of the concatenations that this one begins.
std::optional<ValueId> longest_with(const ir::Graph& graph, ValueId shorter, std::span<const ValueId> concatenations) {
  std::optional<ValueId> longest;
  for (ValueId v : concatenations)
    if (begins(graph, longest.value_or(shorter), v)) longest = v;  // then it begins with `shorter`, too
  return longest;
}

/// Those of the values that lie as nobody but the gradients wants them.
std::vector<ValueId> concatenations_of(const ir::Graph& graph, std::span<const ValueId> values) {
  IdSet<ValueId> given;
  for (const ir::Output& output : graph.outputs())
    if (output.kind != ir::OutputKind::saved) given.insert(output.value);
  std::vector<ValueId> found;
  std::ranges::copy_if(values, std::back_inserter(found), [&](ValueId v) { return is_concatenation(graph, v) && !given.has(v); });
  return found;
}

Dim joined_dim(const ir::Graph& graph, ValueId concatenation) {
  const Dim dim = std::get<Dim>(*graph.node(graph.value(concatenation).node).attribute("dim"));
  return dim.constant() < 0 ? dim + Dim(static_cast<std::int64_t>(graph.type(concatenation).rank())) : dim;
}

}  // namespace

std::vector<ValueId> without_beginnings(const ir::Graph& graph, std::vector<ValueId> kept) {
  const std::vector<ValueId> concatenations = concatenations_of(graph, kept);
  for (ValueId v : concatenations)
    if (longest_with(graph, v, concatenations)) std::erase(kept, v);
  return kept;
}

std::size_t read_parts_of_kept(ir::Graph& graph, std::size_t nodes, std::span<const ValueId> kept) {
  const std::vector<ValueId> longer = concatenations_of(graph, kept);
  if (longer.empty()) return 0;
  std::size_t made = 0;
  const auto all = graph.nodes().first(nodes);
  for (NodeId id : std::vector(all.begin(), all.end())) {
    if (graph.node(id).op != "cat") continue;
    const ValueId shorter = graph.node(id).results[0];
    const auto whole = std::ranges::find(kept, shorter) == kept.end() ? longest_with(graph, shorter, longer) : std::nullopt;
    if (!whole) continue;
    const Dim dim = joined_dim(graph, shorter);
    const Dim end = graph.type(shorter).shape[static_cast<std::size_t>(dim.constant())];
    const ValueId part = ops::NodeBuilder(graph, id).one("slice", {*whole}, {{"dim", dim}, {"end", end}, {"start", Dim(0)}, {"step", Dim(1)}});
    graph.replace_uses(shorter, part);
    ++made;
  }
  return made;
}

}  // namespace tenon::rewrite
