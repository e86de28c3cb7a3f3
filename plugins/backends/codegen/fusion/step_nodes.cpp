#include "fusion/step_nodes.h"

#include <algorithm>

namespace tenon::codegen {

namespace {

std::vector<NodeId> nodes_of(const ContractionStep& step) {
  std::vector<NodeId> nodes = step.epilogue ? step.epilogue->nodes : std::vector{step.product.node};
  if (step.pooling) nodes.insert(nodes.end(), step.pooling->kernel.nodes.begin(), step.pooling->kernel.nodes.end());
  return nodes;
}

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

std::string words_of(const ir::Graph& graph, std::span<const NodeId> nodes) {
  constexpr std::size_t kMost = 8;
  std::string words;
  for (const NodeId n : nodes.first(std::min(nodes.size(), kMost))) words += (words.empty() ? "" : " ") + std::string(graph.node(n).op);
  if (nodes.size() > kMost) words += " and " + std::to_string(nodes.size() - kMost) + " more";
  return words.empty() ? "copy" : words;
}

const ir::Node* placed_node(const ir::Graph& graph, std::span<const NodeId> nodes) {
  const auto placed = std::ranges::find_if(nodes, [&](NodeId n) { return graph.node(n).location.is_known(); });
  return placed == nodes.end() ? nullptr : &graph.node(*placed);
}

}  // namespace tenon::codegen
