#include "step_times.h"

#include <nlohmann/json.hpp>
#include <set>

#include "core/ir/printer.h"
#include "decisions/cpu_schedule.h"
#include "fusion/lifetimes.h"

namespace tenon::llvm_backend {

using codegen::ContractionStep;
using codegen::KernelStep;
using codegen::LibraryStep;

namespace {

double size(const ir::Dim& d, std::span<const std::int64_t> symbols) { return static_cast<double>(d.evaluate(symbols)); }

double flops_of(const KernelStep& step, std::span<const std::int64_t> symbols) {
  return codegen::work_per_point(step.kernel) * size(unit_count(step.kernel), symbols) * size(points_per_unit(step.kernel), symbols) * static_cast<double>(1 + step.others.size());
}

double flops_of(const codegen::Product& product, std::span<const std::int64_t> symbols) {
  double flops = 2 * size(product.row_count(), symbols) * size(product.column_count(), symbols) * size(product.depth(), symbols);
  for (const codegen::Role& r : product.batch) flops *= size(r.loop.extent, symbols);
  return flops;
}

std::vector<NodeId> nodes_of(const ContractionStep& step) {
  std::vector<NodeId> nodes = step.epilogue ? step.epilogue->nodes : std::vector{step.product.node};
  if (step.pooling) nodes.insert(nodes.end(), step.pooling->kernel.nodes.begin(), step.pooling->kernel.nodes.end());
  return nodes;
}

const char* kind_of(const codegen::Step& step) {
  if (std::holds_alternative<KernelStep>(step)) return "kernel";
  return std::holds_alternative<LibraryStep>(step) ? "library" : "product";
}

std::vector<NodeId> nodes_of(const codegen::Step& step) {
  if (auto* kernel = std::get_if<KernelStep>(&step)) return kernel->nodes;
  if (auto* product = std::get_if<ContractionStep>(&step)) return nodes_of(*product);
  if (auto* library = std::get_if<LibraryStep>(&step)) return {library->node};
  const auto& chain = std::get<codegen::ChainStep>(step);
  std::vector<NodeId> nodes{chain.first.node};
  nodes.insert(nodes.end(), chain.between.nodes.begin(), chain.between.nodes.end());
  const std::vector<NodeId> last = nodes_of(chain.second);
  nodes.insert(nodes.end(), last.begin(), last.end());
  return nodes;
}

double flops_of(const codegen::Step& step, std::span<const std::int64_t> symbols) {
  if (auto* kernel = std::get_if<KernelStep>(&step)) return flops_of(*kernel, symbols);
  if (auto* product = std::get_if<ContractionStep>(&step)) return flops_of(product->product, symbols);
  if (auto* chain = std::get_if<codegen::ChainStep>(&step)) return flops_of(chain->first, symbols) + flops_of(chain->second.product, symbols);
  return 0;
}

/// The loops of a step that are its own, not of its products.
const codegen::Kernel* loops_of(const codegen::Step& step) {
  if (auto* kernel = std::get_if<KernelStep>(&step)) return &kernel->kernel;
  if (auto* chain = std::get_if<codegen::ChainStep>(&step)) return &chain->between.kernel;
  auto* product = std::get_if<ContractionStep>(&step);
  return product && product->epilogue ? &product->epilogue->kernel : nullptr;
}

nlohmann::json outline(const ir::Graph& graph, NodeId id) {
  const ir::Node& node = graph.node(id);
  nlohmann::json said{{"op", node.op}};
  if (!node.results.empty()) said["name"] = graph.value(node.results[0]).name, said["type"] = ir::print_type(graph, graph.type(node.results[0]));
  if (node.location.is_known()) said.update({{"file", node.location->file}, {"line", node.location->line}, {"function", node.location->function}, {"code", node.location->code}});
  return said;
}

}  // namespace

std::string step_outline(const ir::Graph& graph, const codegen::Plan& plan, std::size_t program, std::size_t step) {
  nlohmann::json nodes = nlohmann::json::array();
  for (const NodeId id : nodes_of(plan.steps[step])) nodes.push_back(outline(graph, id));
  nlohmann::json line{{"program", program}, {"step", step}, {"kind", kind_of(plan.steps[step])}, {"nodes", std::move(nodes)}};
  if (const codegen::Kernel* loops = loops_of(plan.steps[step])) line["loops"] = codegen::to_text(*loops);
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string memory_line(const ir::Graph& graph, const codegen::Plan& plan, std::size_t program) {
  return nlohmann::json{{"program", program}, {"alive", codegen::lives_of(plan, graph, plan.algebra).alive_at_steps(plan.steps.size())}}.dump();
}

std::string step_line(const ir::Graph& graph, const codegen::Plan& plan, std::size_t program, std::size_t step, std::span<const std::int64_t> symbols, double microseconds) {
  std::set<std::size_t> values;
  for (const bool written : {false, true})
    for (const std::size_t v : codegen::values_of(plan.steps[step], graph, written)) values.insert(v);
  double bytes = 0;
  for (const std::size_t v : values) {
    if (v < graph.value_capacity()) {
      const ir::Type& type = graph.type(ValueId(static_cast<std::uint32_t>(v)));
      if (type.is_tensor()) bytes += size(type.element_count(), symbols) * static_cast<double>(size_of(type.dtype));
    } else {
      const codegen::Temporary& t = plan.temporaries[v - graph.value_capacity()];
      bytes += size(t.elements, symbols) * static_cast<double>(size_of(t.dtype));
    }
  }
  std::string what;
  for (NodeId id : nodes_of(plan.steps[step])) what += (what.empty() ? "" : " ") + std::string(graph.node(id).op);
  return nlohmann::json{{"program", program}, {"step", step}, {"kind", kind_of(plan.steps[step])}, {"what", what}, {"us", microseconds}, {"bytes", bytes}, {"flops", flops_of(plan.steps[step], symbols)}}.dump();
}

}  // namespace tenon::llvm_backend
