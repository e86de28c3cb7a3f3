#include "products/ends_of_products.h"

#include <algorithm>
#include <optional>

#include "core/ops/catalog.h"
#include "core/ops/view.h"
#include "products/moved_channels.h"

namespace tenon::cuda {

using ir::NodeId;
using ir::ValueId;

namespace {

class Ends {
 public:
  explicit Ends(const ir::Graph& graph) : graph_(graph), users_(graph.users()) {}

  /// What follows the result of a convolution, whose channels are moved to the end and back, up to reductions.
  std::optional<ValueId> of(ValueId sum) const {
    const auto moved = only_user(sum), back = moved ? only_user(result_of(*moved)) : std::nullopt;
    if (!back || !moves_channels(graph_, graph_.node(*moved), kChannelsToEnd) || !moves_channels(graph_, graph_.node(*back), kChannelsBack)) return {};
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
  for (const ValueId end : found) lay_channels_last(graph, end, readers[end.value].front());
}

}  // namespace tenon::cuda
