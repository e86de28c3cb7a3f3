#include "step_times.h"

#include <nlohmann/json.hpp>
#include <set>

#include "decisions/cpu_schedule.h"
#include "fusion/lifetimes.h"
#include "fusion/step_nodes.h"

namespace tenon::llvm_backend {

using codegen::ContractionStep;
using codegen::KernelStep;

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

double flops_of(const codegen::Step& step, std::span<const std::int64_t> symbols) {
  if (auto* kernel = std::get_if<KernelStep>(&step)) return flops_of(*kernel, symbols);
  if (auto* product = std::get_if<ContractionStep>(&step)) return flops_of(product->product, symbols);
  if (auto* chain = std::get_if<codegen::ChainStep>(&step)) return flops_of(chain->first, symbols) + flops_of(chain->second.product, symbols);
  return 0;
}

}  // namespace

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
  for (NodeId id : codegen::nodes_of(plan.steps[step])) what += (what.empty() ? "" : " ") + std::string(graph.node(id).op);
  return nlohmann::json{{"program", program}, {"step", step}, {"kind", codegen::kind_of(plan.steps[step])}, {"what", what}, {"us", microseconds}, {"bytes", bytes}, {"flops", flops_of(plan.steps[step], symbols)}}.dump();
}

}  // namespace tenon::llvm_backend
