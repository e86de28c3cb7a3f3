#include "fusion/step_nodes.h"

#include <algorithm>
#include <cctype>
#include <unordered_map>
#include <unordered_set>
#include <variant>

namespace tenon::codegen {

namespace {

std::vector<NodeId> nodes_of(const ContractionStep& step) {
  std::vector<NodeId> nodes = step.epilogue ? step.epilogue->nodes : std::vector{step.product.node};
  if (step.pooling) nodes.insert(nodes.end(), step.pooling->kernel.nodes.begin(), step.pooling->kernel.nodes.end());
  return nodes;
}

/// Follows nodes back to the values that a step reads.
class Computation {
 public:
  Computation(const ir::Graph& graph, const Plan& plan, std::span<const std::size_t> read, std::span<const NodeId> written) : graph_(graph), plan_(plan), read_(read.begin(), read.end()) {
    for (const NodeId n : written) written_.insert(n.value);
    for (const NodeId n : written) follow(n);
  }

  std::vector<NodeId> take_nodes() { return std::move(nodes_); }

 private:
  /// What operands come from: some from what the step reads; else some from what it does not; else from nothing but numbers.
  enum class Origin : std::uint8_t { numbers, elsewhere, read };

  /// The origin of a value, or the node that says it.
  std::variant<Origin, NodeId> origin(ValueId v) const {
    const ir::Value& value = graph_.value(v);
    if (read_.contains(v.value)) return Origin::read;
    if (value.kind == ir::ValueKind::literal) return Origin::numbers;
    if (value.kind != ir::ValueKind::result) return Origin::elsewhere;
    if (const auto known = origins_.find(value.node.value); known != origins_.end()) return known->second;
    if (!written_.contains(value.node.value) && plan_.in_memory[v.value]) return Origin::elsewhere;
    return value.node;
  }

  void follow(NodeId first) {
    std::vector<NodeId> pending{first};
    while (!pending.empty()) {
      const NodeId n = pending.back();
      const std::size_t before = pending.size();
      Origin all = Origin::numbers;
      for (const ValueId v : graph_.node(n).operands) {
        const auto from = origin(v);
        if (auto* node = std::get_if<NodeId>(&from)) pending.push_back(*node);
        else all = std::max(all, std::get<Origin>(from));
      }
      if (pending.size() > before) {
        std::reverse(pending.begin() + static_cast<std::ptrdiff_t>(before), pending.end());
        continue;
      }
      pending.pop_back();
      if (written_.contains(n.value)) all = Origin::read;
      if (origins_.emplace(n.value, all).second && all != Origin::elsewhere) nodes_.push_back(n);
    }
  }

  const ir::Graph& graph_;
  const Plan& plan_;
  const std::unordered_set<std::size_t> read_;
  std::unordered_set<std::uint32_t> written_;
  std::unordered_map<std::uint32_t, Origin> origins_;  // by node
  std::vector<NodeId> nodes_;
};

}  // namespace

const char* kind_of(const Step& step) {
  if (std::holds_alternative<KernelStep>(step)) return "kernel";
  return std::holds_alternative<LibraryStep>(step) ? "library" : "product";
}

std::vector<NodeId> nodes_of(const Step& step) {
  if (auto* kernel = std::get_if<KernelStep>(&step)) return kernel->nodes;
  if (auto* product = std::get_if<ContractionStep>(&step)) return nodes_of(*product);
  if (auto* library = std::get_if<LibraryStep>(&step)) return {library->node};
  const auto& chain = std::get<ChainStep>(step);
  std::vector<NodeId> nodes{chain.first.node};
  nodes.insert(nodes.end(), chain.between.nodes.begin(), chain.between.nodes.end());
  const std::vector<NodeId> last = nodes_of(chain.second);
  nodes.insert(nodes.end(), last.begin(), last.end());
  return nodes;
}

std::vector<NodeId> computed_nodes(const ir::Graph& graph, const Plan& plan, const Step& step) {
  return Computation(graph, plan, values_of(step, graph, false), nodes_of(step)).take_nodes();
}

std::vector<NodeId> computed_nodes(const ir::Graph& graph, const Plan& plan, const KernelStep& kernel) {
  std::vector<std::size_t> read;
  for (std::size_t b = 0; b < kernel.buffers.size(); ++b)
    if (!kernel.kernel.buffers[b].written) read.push_back(kernel.buffers[b].value);
  return Computation(graph, plan, read, kernel.nodes).take_nodes();
}

std::string name_of(const ir::Graph& graph, std::span<const NodeId> nodes) {
  constexpr std::size_t kLongest = 60;
  std::vector<std::string> words;
  for (const NodeId n : nodes) {
    std::string word(graph.node(n).op);
    std::ranges::replace_if(word, [](unsigned char c) { return !std::isalnum(c); }, '_');
    if (std::ranges::find(words, word) == words.end()) words.push_back(std::move(word));
  }
  if (words.empty()) return "copy";
  if (words.size() == 1) return words[0];
  std::string name = "fused";
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (name.size() + 1 + words[i].size() > kLongest) return name + "_and_" + std::to_string(words.size() - i) + "_more";
    name += "_" + words[i];
  }
  return name;
}

const ir::Node* placed_node(const ir::Graph& graph, std::span<const NodeId> nodes) {
  const auto placed = std::ranges::find_if(nodes, [&](NodeId n) { return graph.node(n).location.is_known(); });
  return placed == nodes.end() ? nullptr : &graph.node(*placed);
}

}  // namespace tenon::codegen
