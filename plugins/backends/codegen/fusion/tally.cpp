#include "fusion/tally.h"

#include <fmt/format.h>

#include <algorithm>

#include "fusion/lifetimes.h"
#include "fusion/overwriting.h"
#include "fusion/planner.h"

namespace tenon::codegen {
namespace {

class Counter {
 public:
  Counter(const Plan& plan, const ir::Graph& graph) : plan_(plan), graph_(graph), algebra_(plan.algebra) {}

  Tally count() {
    for (const Step& step : plan_.steps) {
      ++tally_.kernels;
      if (auto* kernel = std::get_if<KernelStep>(&step)) add(*kernel);
      else if (auto* product = std::get_if<ContractionStep>(&step)) add(*product);
      else if (auto* chain = std::get_if<ChainStep>(&step)) add(chain->first), add(chain->second), add(chain->between);
      else add(std::get<LibraryStep>(step));
    }
    count_alive();
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

  void add(const Kernel& kernel, double outer, double all) {
    std::size_t length = 0;
    for (const Stage& stage : kernel.stages) {
      const double points = stage.kind == StageKind::row ? outer : all;
      std::vector<OpId> roots;
      for (const Store& store : stage.stores) roots.push_back(store.value);
      for (std::uint32_t r : stage.reductions) roots.insert(roots.end(), kernel.reductions[r].elements.begin(), kernel.reductions[r].elements.end());
      length += add_needed(kernel.operations, std::move(roots), points);
      tally_.stores += points * static_cast<double>(stage.stores.size());
    }
    tally_.longest = std::max(tally_.longest, length);
    tally_.length += length;
  }

  /// Gives how many they are.
  std::size_t add_needed(std::span<const Operation> operations, std::vector<OpId> some, double points) {
    const std::vector<OpId> all = all_needs_of(operations, std::move(some));
    for (const OpId id : all)
      if (operations[id].kind == OperationKind::load) tally_.loads += points;
      else tally_.operations += points * work_of(operations[id]);
    return all.size();
  }

  double points_of(std::span<const Role> roles) const { return estimated_points(algebra_, loops_of(roles)); }

  void add(const Product& product) {
    const double rows = points_of(product.rows), columns = points_of(product.columns), depth = estimated_points(algebra_, product.summed), batch = points_of(product.batch);
    tally_.operations += batch * rows * columns * depth;
    tally_.loads += batch * (rows + columns) * depth;
    add_operand(product, product.a, batch * rows * depth);
    add_operand(product, product.b, batch * columns * depth);
  }

  /// What is computed is written to be multiplied.
  void add_operand(const Product& product, const ProductOperand& operand, double elements) {
    if (!operand.is_computed()) return;
    tally_.length += add_needed(product.operations, {operand.element}, elements);
    tally_.stores += elements;
  }

  void add(const ContractionStep& step) {
    add(step.product);
    const double results = points_of(step.product.batch) * points_of(step.product.rows) * points_of(step.product.columns);
    if (step.epilogue) add(step.epilogue->kernel, results, results);
    else tally_.stores += results;
    if (step.pooling) add(step.pooling->kernel);
    if (step.sums) add(step.sums->kernel.kernel, points_of(step.product.columns), results);
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

  /// What a step writes over something else takes no memory at that step.
  void count_alive() {
    const std::size_t steps = plan_.steps.size();
    if (steps == 0) return;
    const Lives lives = lives_of(plan_, graph_, algebra_);
    std::vector<double> alive = lives.alive_at_steps(steps);
    tally_.apart_bytes = std::ranges::max(alive);
    std::vector<bool> lies_over(lives.bytes.size(), false), given(lives.bytes.size(), false);
    for (std::size_t s = 0; s < steps; ++s)
      for (const auto& [written, read] : overwritings(plan_.steps[s])) {
        const std::size_t w = written.value, r = read.value;
        const bool ends = lives.first[r] != Lives::kNever && lives.last[r] == s && !given[r], begins = lives.first[w] == s && lives.last[w] != steps && !lies_over[w];
        if (!ends || !begins || lives.bytes[w] != lives.bytes[r]) continue;
        lies_over[w] = given[r] = true;
        alive[s] -= lives.bytes[r];
      }
    tally_.live_bytes = std::ranges::max(alive);
  }

  const Plan& plan_;
  const ir::Graph& graph_;
  IndexAlgebra algebra_;
  Tally tally_;
};

}  // namespace

Tally tally_of(const Plan& plan, const ir::Graph& graph) { return Counter(plan, graph).count(); }

std::string to_text(const Tally& t) {
  return fmt::format("the plan: {} kernels of {} operations, the longest of {}; at all points {:.0f} operations, {:.0f} loads, {:.0f} stores; {:.0f} bytes alive at once, {:.0f} if none were written over others", t.kernels, t.length,
                     t.longest, t.operations, t.loads, t.stores, t.live_bytes, t.apart_bytes);
}

}  // namespace tenon::codegen
