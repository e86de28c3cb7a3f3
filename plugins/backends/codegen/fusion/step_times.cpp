#include "fusion/step_times.h"

#include <nlohmann/json.hpp>
#include <set>

#include "fusion/step_nodes.h"

namespace tenon::codegen {
namespace {

double size(const Dim& d, std::span<const std::int64_t> symbols) { return static_cast<double>(d.evaluate(symbols)); }

/// Loops whose sizes other loops decide count as one point.
double flops_of(const KernelStep& step, std::span<const std::int64_t> symbols) {
  double flops = work_per_point(step.kernel) * static_cast<double>(1 + step.others.size());
  for (const auto* loops : {&step.kernel.outer, &step.kernel.inner})
    for (const Loop& l : *loops) {
      bool is_fixed = true;
      l.extent.for_each_symbol([&](SymbolId s) { is_fixed &= is_graph_symbol(s); });
      if (is_fixed) flops *= size(l.extent, symbols);
    }
  return flops;
}

double flops_of(const Product& product, std::span<const std::int64_t> symbols) {
  double flops = 2 * size(product.row_count(), symbols) * size(product.column_count(), symbols) * size(product.depth(), symbols);
  for (const Role& r : product.batch) flops *= size(r.loop.extent, symbols);
  return flops;
}

double flops_of(const Step& step, std::span<const std::int64_t> symbols) {
  if (auto* kernel = std::get_if<KernelStep>(&step)) return flops_of(*kernel, symbols);
  if (auto* product = std::get_if<ContractionStep>(&step)) return flops_of(product->product, symbols);
  if (auto* chain = std::get_if<ChainStep>(&step)) return flops_of(chain->first, symbols) + flops_of(chain->second.product, symbols);
  return 0;
}

double bytes_of(const ir::Graph& graph, const Plan& plan, std::size_t value, std::span<const std::int64_t> symbols) {
  if (value >= graph.value_capacity()) {
    const Temporary& t = plan.temporaries[value - graph.value_capacity()];
    return size(t.elements, symbols) * static_cast<double>(size_of(t.dtype));
  }
  const ir::Type& type = graph.type(ValueId(static_cast<std::uint32_t>(value)));
  return type.is_tensor() ? size(type.element_count(), symbols) * static_cast<double>(size_of(type.dtype)) : 0;
}

}  // namespace

std::string step_line(const ir::Graph& graph, const Plan& plan, std::size_t program, std::size_t step, std::span<const std::int64_t> symbols, double microseconds) {
  const Step& ran = plan.steps[step];
  std::set<std::size_t> values;
  for (const bool written : {false, true})
    for (const std::size_t v : values_of(ran, graph, written)) values.insert(v);
  double bytes = 0;
  for (const std::size_t v : values) bytes += bytes_of(graph, plan, v, symbols);
  return nlohmann::json{{"program", program}, {"step", step}, {"kind", kind_of(ran)}, {"name", name_of(graph, computed_nodes(graph, plan, ran))}, {"us", microseconds}, {"bytes", bytes}, {"flops", flops_of(ran, symbols)}}.dump();
}

}  // namespace tenon::codegen
