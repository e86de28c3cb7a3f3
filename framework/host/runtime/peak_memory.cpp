#include "host/runtime/peak_memory.h"

#include <algorithm>
#include <vector>

#include "core/ops/view.h"

namespace tenon::host {
namespace {

class Liveness {
 public:
  Liveness(const ir::Graph& graph, std::span<const std::int64_t> symbols) : graph_(graph), symbols_(symbols), root_(graph.value_capacity()), last_(graph.value_capacity(), 0) {
    for (std::size_t v = 0; v < root_.size(); ++v) root_[v] = v;
    const auto nodes = graph.nodes();
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const ir::Node& node = graph.node(nodes[i]);
      for (ir::ValueId v : node.operands) last_[root_[v.value]] = i;
      if (ops::is_view(graph, nodes[i])) root_[node.results[0].value] = root_[node.operands[0].value];
    }
    for (const ir::Output& output : graph.outputs()) last_[root_[output.value.value]] = nodes.size();
  }

  std::size_t peak() const {
    std::size_t live = 0, most = 0;
    const auto nodes = graph_.nodes();
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const ir::Node& node = graph_.node(nodes[i]);
      for (ir::ValueId v : node.results) live += own_bytes(v);
      most = std::max(most, live);
      std::vector<std::size_t> ending;
      for (ir::ValueId v : node.operands) ending.push_back(root_[v.value]);
      for (ir::ValueId v : node.results) ending.push_back(root_[v.value]);
      std::ranges::sort(ending);
      ending.erase(std::unique(ending.begin(), ending.end()), ending.end());
      for (std::size_t v : ending)
        if (last_[v] <= i) live -= own_bytes(ir::ValueId(v));
    }
    return most;
  }

 private:
  /// The bytes of a result that is no view, and of no constant.
  std::size_t own_bytes(ir::ValueId v) const {
    const ir::Value& value = graph_.value(v);
    if (value.kind != ir::ValueKind::result || root_[v.value] != v.value || graph_.node(value.node).op == "constant") return 0;
    std::int64_t bytes = static_cast<std::int64_t>(size_of(graph_.type(v).dtype));
    for (const ir::Dim& d : graph_.type(v).shape) {
      bool known = true;
      d.for_each_symbol([&](tenon::SymbolId s) { known = known && s.value < symbols_.size() && symbols_[s.value] >= 0; });
      bytes *= known ? d.evaluate(symbols_) : 0;
    }
    return static_cast<std::size_t>(std::max<std::int64_t>(bytes, 0));
  }

  const ir::Graph& graph_;
  const std::span<const std::int64_t> symbols_;
  std::vector<std::size_t> root_;  // by value: whose memory it has
  std::vector<std::size_t> last_;  // by value with memory of its own: the last node that reads it, or a view of it
};

}  // namespace

std::size_t unfused_peak(const ir::Graph& graph, std::span<const std::int64_t> symbols) { return Liveness(graph, symbols).peak(); }

}  // namespace tenon::host
