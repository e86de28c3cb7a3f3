#include "fusion/tally.h"

#include <fmt/format.h>

#include <algorithm>

#include "fusion/planner.h"

namespace tenon::codegen {
namespace {

class Counter {
 public:
  Counter(const Plan& plan, const ir::Graph& graph) : plan_(plan), graph_(graph), algebra_(symbols_of(graph)) {}

  Tally count() {
    for (const Step& step : plan_.steps) {
      ++tally_.kernels;
      if (auto* kernel = std::get_if<KernelStep>(&step)) add(*kernel);
      else if (auto* product = std::get_if<ContractionStep>(&step)) add(*product);
      else if (auto* chain = std::get_if<ChainStep>(&step)) add(chain->first), add(chain->second), add(chain->between);
      else add(std::get<LibraryStep>(step));
    }
    tally_.live_bytes = most_alive();
    return tally_;
  }

 private:
  double extent(const Loop& loop) const { return algebra_.estimate(loop.extent); }

  void add(const KernelStep& step) {
    double outer = 1.0 + static_cast<double>(step.others.size()), inner = 1;
    for (const Loop& loop : step.kernel.outer) outer *= extent(loop);
    for (const Loop& loop : step.kernel.inner) inner *= extent(loop);
    add(step.kernel, outer, outer * inner);
  }

  /// The loops of kernels beside a product depend on its tiles.
  void add_beside_product(const std::optional<KernelStep>& step, double elements) {
    if (step) add(step->kernel, elements, elements);
  }

  void add(const Kernel& kernel, double outer, double all) {
    tally_.longest = std::max(tally_.longest, kernel.operations.size());
    tally_.length += kernel.operations.size();
    for (const Stage& stage : kernel.stages) {
      const double points = stage.kind == StageKind::row ? outer : all;
      std::vector<OpId> roots;
      for (const Store& store : stage.stores) roots.push_back(store.value);
      for (std::uint32_t r : stage.reductions) roots.insert(roots.end(), kernel.reductions[r].elements.begin(), kernel.reductions[r].elements.end());
      add_needed(kernel, std::move(roots), points);
      tally_.stores += points * static_cast<double>(stage.stores.size());
    }
  }

  void add_needed(const Kernel& kernel, std::vector<OpId> open, double points) {
    std::vector<bool> seen(kernel.operations.size(), false);
    while (!open.empty()) {
      const OpId id = open.back();
      open.pop_back();
      if (seen[id]) continue;
      seen[id] = true;
      const Operation& op = kernel.operations[id];
      if (op.kind == OperationKind::load) tally_.loads += points;
      else tally_.operations += points * work_of(op);
      for (OpId need : needs_of(op)) open.push_back(need);
    }
  }

  void add(const ContractionStep& product) {
    const double rows = algebra_.estimate(product.m), columns = algebra_.estimate(product.n), depth = algebra_.estimate(product.steps) * algebra_.estimate(product.step_depth);
    double batch = 1;
    for (const Dim& extent : product.batch) batch *= algebra_.estimate(extent);
    tally_.operations += batch * rows * columns * depth;
    tally_.loads += batch * (rows + columns) * depth;
    if (!product.epilogue) tally_.stores += batch * rows * columns;
    add_beside_product(product.a.pack, batch * rows * depth);
    add_beside_product(product.a.table, rows);
    add_beside_product(product.b.pack, batch * columns * depth);
    add_beside_product(product.epilogue, batch * rows * columns);
    if (product.pooling) add(product.pooling->kernel);
  }

  double elements_of(std::span<const ValueId> values) const {
    double elements = 0;
    for (ValueId v : values) elements += algebra_.estimate(graph_.type(v).element_count());
    return elements;
  }

  void add(const LibraryStep& step) {
    tally_.loads += elements_of(graph_.node(step.node).operands);
    tally_.stores += elements_of(graph_.node(step.node).results);
  }

  double bytes_of(std::size_t value) const {
    const std::size_t own = graph_.value_capacity();
    if (value >= own) return algebra_.estimate(plan_.temporaries[value - own].elements) * static_cast<double>(size_of(plan_.temporaries[value - own].dtype));
    const ir::Type& type = graph_.type(ValueId(static_cast<std::uint32_t>(value)));
    return algebra_.estimate(type.element_count()) * static_cast<double>(size_of(type.dtype));
  }

  double most_alive() const {
    constexpr std::size_t kNever = static_cast<std::size_t>(-1);
    const std::size_t values = graph_.value_capacity() + plan_.temporaries.size(), steps = plan_.steps.size();
    std::vector<std::size_t> first(values, kNever), last(values, 0);
    for (std::size_t s = 0; s < steps; ++s) {
      for (std::size_t v : values_of(plan_.steps[s], graph_, true)) first[v] = std::min(first[v], s), last[v] = s;
      for (std::size_t v : values_of(plan_.steps[s], graph_, false)) last[v] = s;
    }
    for (const ir::Output& output : graph_.outputs()) last[output.value.value] = steps;
    std::vector<double> change(steps + 2, 0);
    for (std::size_t v = 0; v < values; ++v)
      if (first[v] != kNever) change[first[v]] += bytes_of(v), change[last[v] + 1] -= bytes_of(v);
    double alive = 0, most = 0;
    for (double c : change) most = std::max(most, alive += c);
    return most;
  }

  const Plan& plan_;
  const ir::Graph& graph_;
  IndexAlgebra algebra_;
  Tally tally_;
};

}  // namespace

Tally tally_of(const Plan& plan, const ir::Graph& graph) { return Counter(plan, graph).count(); }

std::string to_text(const Tally& t) {
  return fmt::format("the plan: {} kernels of {} operations, the longest of {}; at all points {:.0f} operations, {:.0f} loads, {:.0f} stores; {:.0f} bytes alive at once", t.kernels, t.length,
                     t.longest, t.operations, t.loads, t.stores, t.live_bytes);
}

}  // namespace tenon::codegen
