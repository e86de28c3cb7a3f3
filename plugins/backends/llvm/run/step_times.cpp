#include "step_times.h"

#include <nlohmann/json.hpp>
#include <set>

namespace tenon::llvm_backend {

using codegen::ContractionStep;
using codegen::KernelStep;
using codegen::LibraryStep;

namespace {

struct Needs {
  std::set<std::uint32_t> values;
  std::vector<NodeId> nodes;
  double flops = 0;

  void read(const KernelStep& step) {
    for (ValueId v : step.buffers)
      if (!codegen::is_of_thread(v)) values.insert(v.value);
    for (const auto& run : step.others)
      for (ValueId v : run)
        if (!codegen::is_of_thread(v)) values.insert(v.value);
    nodes.insert(nodes.end(), step.nodes.begin(), step.nodes.end());
  }
};

double size(const ir::Dim& d, std::span<const std::int64_t> symbols) { return static_cast<double>(d.evaluate(symbols)); }

Needs needs_of(const KernelStep& step, std::span<const std::int64_t> symbols) {
  Needs needs;
  needs.read(step);
  needs.flops = codegen::work_per_point(step.kernel) * size(codegen::unit_count(step.kernel), symbols) * size(codegen::points_per_unit(step.kernel), symbols) * static_cast<double>(1 + step.others.size());
  return needs;
}

Needs needs_of(const ContractionStep& step, std::span<const std::int64_t> symbols) {
  Needs needs;
  for (const codegen::MatrixOperand* operand : {&step.a, &step.b}) {
    if (operand->pack) needs.read(*operand->pack);
    else needs.values.insert(operand->value.value);
  }
  needs.nodes = {step.node};
  if (step.epilogue) needs.nodes.clear(), needs.read(*step.epilogue);
  if (step.pooling) needs.read(step.pooling->kernel);
  else if (!step.epilogue) needs.values.insert(step.c.value);
  needs.flops = 2 * size(step.m, symbols) * size(step.n, symbols) * size(step.steps, symbols) * size(step.step_depth, symbols);
  for (const ir::Dim& d : step.batch) needs.flops *= size(d, symbols);
  return needs;
}

Needs needs_of(const codegen::ChainStep& step, std::span<const std::int64_t> symbols) {
  Needs needs = needs_of(step.first, symbols), second = needs_of(step.second, symbols);
  needs.read(step.between);
  needs.nodes.insert(needs.nodes.end(), second.nodes.begin(), second.nodes.end());
  needs.values.merge(second.values);
  for (ValueId inside : {step.first.c, step.second.a.value}) needs.values.erase(inside.value);
  needs.flops += second.flops;
  return needs;
}

}  // namespace

std::string step_line(const ir::Graph& graph, const codegen::Plan& plan, std::size_t step, std::span<const std::int64_t> symbols, double microseconds) {
  Needs needs;
  const char* kind = "library";
  if (auto* kernel = std::get_if<KernelStep>(&plan.steps[step])) {
    needs = needs_of(*kernel, symbols), kind = "kernel";
  } else if (auto* product = std::get_if<ContractionStep>(&plan.steps[step])) {
    needs = needs_of(*product, symbols), kind = "product";
  } else if (auto* chain = std::get_if<codegen::ChainStep>(&plan.steps[step])) {
    needs = needs_of(*chain, symbols), kind = "product";
  } else {
    const NodeId id = std::get<LibraryStep>(plan.steps[step]).node;
    needs.nodes = {id};
    for (const auto* values : {&graph.node(id).operands, &graph.node(id).results})
      for (ValueId v : *values) needs.values.insert(v.value);
  }
  double bytes = 0;
  for (const std::uint32_t v : needs.values) {
    if (v < graph.value_capacity()) {
      const ir::Type& type = graph.type(ValueId(v));
      if (type.is_tensor()) bytes += size(type.element_count(), symbols) * static_cast<double>(size_of(type.dtype));
    } else {
      const codegen::Temporary& t = plan.temporaries[v - graph.value_capacity()];
      bytes += size(t.elements, symbols) * static_cast<double>(size_of(t.dtype));
    }
  }
  std::string what;
  for (NodeId id : needs.nodes) what += (what.empty() ? "" : " ") + std::string(graph.node(id).op);
  return nlohmann::json{{"step", step}, {"kind", kind}, {"what", what}, {"us", microseconds}, {"bytes", bytes}, {"flops", needs.flops}}.dump();
}

}  // namespace tenon::llvm_backend
