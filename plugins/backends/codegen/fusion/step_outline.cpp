#include "fusion/step_outline.h"

#include <algorithm>
#include <atomic>
#include <nlohmann/json.hpp>

#include "core/ir/printer.h"
#include "fusion/lifetimes.h"
#include "fusion/step_nodes.h"

namespace tenon::codegen {
namespace {

/// The loops of a step that are its own, not of its products.
const Kernel* loops_of(const Step& step) {
  if (auto* kernel = std::get_if<KernelStep>(&step)) return &kernel->kernel;
  if (auto* chain = std::get_if<ChainStep>(&step)) return &chain->between.kernel;
  auto* product = std::get_if<ContractionStep>(&step);
  return product && product->epilogue ? &product->epilogue->kernel : nullptr;
}

nlohmann::json outline(const ir::Graph& graph, NodeId id, bool is_written) {
  const ir::Node& node = graph.node(id);
  nlohmann::json said{{"op", node.op}, {"written", is_written}};
  if (!node.results.empty()) said["name"] = graph.value(node.results[0]).name, said["type"] = ir::print_type(graph, graph.type(node.results[0]));
  if (node.location.is_known()) said.update({{"file", node.location->file}, {"line", node.location->line}, {"function", node.location->function}, {"code", node.location->code}});
  return said;
}

}  // namespace

std::size_t next_program_number() {
  static std::atomic<std::size_t> last{0};
  return ++last;
}

std::string step_outline(const ir::Graph& graph, const Plan& plan, std::size_t program, std::size_t step, const std::string& kernel) {
  const std::vector<NodeId> computed = computed_nodes(graph, plan, plan.steps[step]), written = nodes_of(plan.steps[step]);
  nlohmann::json nodes = nlohmann::json::array();
  for (const NodeId id : computed) nodes.push_back(outline(graph, id, std::ranges::find(written, id) != written.end()));
  nlohmann::json line{{"program", program}, {"step", step}, {"kind", kind_of(plan.steps[step])}, {"name", name_of(graph, computed)}, {"nodes", std::move(nodes)}};
  if (const Kernel* loops = loops_of(plan.steps[step])) line["loops"] = to_text(*loops);
  if (!kernel.empty()) line["kernel"] = kernel;
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string memory_line(const ir::Graph& graph, const Plan& plan, std::size_t program) {
  return nlohmann::json{{"program", program}, {"alive", lives_of(plan, graph, plan.algebra).alive_at_steps(plan.steps.size())}}.dump();
}

}  // namespace tenon::codegen
