#include "products/ends_of_products.h"

#include <algorithm>
#include <optional>

#include "core/ops/build/node_builder.h"
#include "core/ops/catalog.h"
#include "core/ops/view.h"

namespace tenon::cuda {

using ir::Dim;
using ir::NodeId;
using ir::ValueId;

namespace {

using Dims = std::vector<Dim>;

class Ends {
 public:
  explicit Ends(const ir::Graph& graph) : graph_(graph), users_(graph.users()) {}

  /// What follows the result of a convolution, whose channels are moved to the end and back, up to reductions.
  std::optional<ValueId> of(ValueId sum) const {
    const auto moved = only_user(sum), back = moved ? only_user(result_of(*moved)) : std::nullopt;
    if (!back || !moves_channels(*moved, true) || !moves_channels(*back, false)) return {};
    const ValueId first = result_of(*back);
    ValueId end = first;
    while (const auto next = only_user(end)) {
      const auto body = ops::loop_of(graph_, *next);
      const bool is_point = body && !body->reducer && !ops::is_view(graph_, *next) && graph_.node(*next).results.size() == 1;
      if (!is_point || !(graph_.type(result_of(*next)).shape == graph_.type(first).shape)) break;
      end = result_of(*next);
    }
    const auto reduces = [&](NodeId user) {
      const auto body = ops::loop_of(graph_, user);
      return body && body->reducer && graph_.node(user).op != "conv_sum";
    };
    const auto& readers = users_[end.value];
    return end == first || readers.empty() || !std::ranges::all_of(readers, reduces) ? std::nullopt : std::optional(end);
  }

 private:
  ValueId result_of(NodeId node) const { return graph_.node(node).results[0]; }

  std::optional<NodeId> only_user(ValueId value) const {
    const auto& users = users_[value.value];
    return users.size() == 1 ? std::optional(users[0]) : std::nullopt;
  }

  bool moves_channels(NodeId id, bool to_end) const {
    const ir::Node& node = graph_.node(id);
    if (node.op != "permute" || graph_.type(node.results[0]).rank() != 4) return false;
    return std::get<Dims>(*node.attribute("dims")) == (to_end ? Dims{Dim(0), Dim(2), Dim(3), Dim(1)} : Dims{Dim(0), Dim(3), Dim(1), Dim(2)});
  }

  const ir::Graph& graph_;
  const std::vector<std::vector<NodeId>> users_;
};

}  // namespace

void move_ends_of_products(ir::Graph& graph) {
  const Ends ends(graph);
  std::vector<ValueId> found;
  for (const NodeId id : graph.nodes())
    if (graph.node(id).op == "conv_sum")
      if (const auto end = ends.of(graph.node(id).results[0]); end && !std::ranges::count(found, *end)) found.push_back(*end);  // two convolutions may be added up
  const auto readers = graph.users();
  for (const ValueId end : found) {
    ops::NodeBuilder build(graph, readers[end.value].front());
    const ValueId moved = build.one("permute", {end}, {{"dims", Dims{Dim(0), Dim(2), Dim(3), Dim(1)}}});
    const ValueId back = build.one("permute", {moved}, {{"dims", Dims{Dim(0), Dim(3), Dim(1), Dim(2)}}});
    graph.replace_uses(end, back);
    graph.mutable_node(graph.value(moved).node).operands[0] = end;
  }
}

}  // namespace tenon::cuda
