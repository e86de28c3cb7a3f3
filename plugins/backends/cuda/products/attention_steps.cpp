#include "products/attention_steps.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "fusion/pruning.h"
#include "products/product_kernel.h"
#include "schedule/attention_tile.h"

namespace tenon::cuda {

using namespace codegen;

namespace {

/// What loops that go over the same points in the same order as others are by these. False where some of them and some of the others have not as many points together.
bool relate(std::span<const Loop> from, std::span<const Loop> to, ProductKernel::Places& places) {
  std::size_t next = 0;
  for (std::size_t first = 0, last = 0; first < from.size(); first = last) {
    std::int64_t points = from[last++].extent.constant(), others = 1;
    Dim place(0);
    while (points != others) {
      if (points < others) {
        if (last == from.size()) return false;
        points *= from[last++].extent.constant();
      } else {
        if (next == to.size()) return false;
        place = place * to[next].extent + Dim::symbol(to[next].variable), others *= to[next].extent.constant(), ++next;
      }
    }
    for (std::int64_t behind = points; first < last; ++first) {
      const std::int64_t extent = from[first].extent.constant();
      const Dim within = behind == points ? place : mod(place, Dim(behind));
      behind /= extent;
      places.emplace_back(from[first].variable, extent == 1 ? Dim(0) : floor_div(within, Dim(behind)));
    }
  }
  return std::all_of(to.begin() + static_cast<std::ptrdiff_t>(next), to.end(), [](const Loop& l) { return l.extent == Dim(1); });
}

bool have_constant_extents(std::initializer_list<std::span<const Loop>> all) {
  return std::ranges::all_of(all, [](std::span<const Loop> loops) { return std::ranges::all_of(loops, [](const Loop& l) { return l.extent.is_constant() && l.extent.constant() > 0; }); });
}

/// The loops of the second product's result that the first one has too, the outermost of the rows between them first.
std::vector<Loop> shared_loops(const ChainStep& chain) {
  std::vector<Loop> shared;
  for (const std::size_t first : chain.first_batch) {
    const auto same = std::ranges::find(chain.second_batch, first);
    if (same != chain.second_batch.end()) shared.push_back(chain.second.product.batch[static_cast<std::size_t>(same - chain.second_batch.begin())].loop);
  }
  for (const Role& row : chain.second.product.rows) shared.push_back(row.loop);
  return shared;
}

std::optional<KernelStep> attention_kernel(const ChainStep& chain, const ir::Graph& graph, const IndexAlgebra& algebra, bool rounds) {
  const Product &first = chain.first, &second = chain.second.product;
  if (!chain.softmax || !chain.second_rows.empty() || chain.second.pooling || second.summed.size() != 1 || first.summed.size() != 1) return {};
  const std::vector<Loop> shared = shared_loops(chain);
  std::vector<Loop> of_first;
  for (const std::size_t b : chain.first_batch) of_first.push_back(first.batch[b].loop);
  for (const Role& row : first.rows) of_first.push_back(row.loop);
  ProductKernel::Places from_first, from_between;
  const std::vector<Loop> columns = loops_of(first.columns);
  if (!have_constant_extents({shared, of_first, columns, chain.between.kernel.outer, chain.between.kernel.inner, first.summed, second.summed})) return {};
  if (!relate(of_first, shared, from_first) || !relate(columns, second.summed, from_first)) return {};
  if (!relate(chain.between.kernel.outer, shared, from_between) || !relate(chain.between.kernel.inner, second.summed, from_between)) return {};

  ProductKernel made(chain.second, graph, algebra);
  Kernel& kernel = made.step().kernel;
  const OpId products = made.join(first.operations, first.buffers, from_first, {});
  const std::uint32_t number = made.add_sum(products + first.a.element, products + first.b.element, DType::f32);
  const auto is_sum = [&](const Operation& op) { return op.kind == OperationKind::load && chain.between.buffers[op.payload] == first.result; };
  const Operation sum{.kind = OperationKind::reduced, .dtype = DType::f32, .payload = std::uint64_t{number} << 16};
  const OpId between = made.join(chain.between.kernel.operations, chain.between.buffers, from_between, [&](const Operation& op) { return is_sum(op) ? std::optional(sum) : std::nullopt; });
  Operation weighted{.kind = OperationKind::primitive, .primitive = ops::Primitive::mul, .dtype = DType::f32};
  weighted.args[0] = between + chain.softmax->score, weighted.args[1] = second.b.element;
  kernel.reductions[0].elements[0] = made.add(weighted);
  kernel.stages.insert(kernel.stages.begin(), {StageKind::reduce, {number}, {}});
  kernel.inner.push_back(first.summed[0]);
  made.step().nodes.push_back(first.node);
  std::ranges::copy(chain.between.nodes, std::back_inserter(made.step().nodes));
  KernelStep step = pruned(made.take());
  step.kernel.schedule = std::make_shared<Attended>(Attended::Choices{rounds, chain.diagonal, chain.softmax->zeroes_hidden});
  step.starts = take_out_starts(step.kernel);
  return attention_tile(step.kernel, step.starts) ? std::optional(std::move(step)) : std::nullopt;
}

}  // namespace

void make_attention_kernels(Plan& plan, const ir::Graph& graph, const Machine& machine, bool rounds) {
  std::vector<Step> steps;
  for (Step& step : std::exchange(plan.steps, {})) {
    auto* chain = std::get_if<ChainStep>(&step);
    if (!chain) {
      steps.push_back(std::move(step));
      continue;
    }
    if (auto made = attention_kernel(*chain, graph, plan.algebra, rounds)) {
      steps.push_back(*std::move(made));
      continue;
    }
    plan.in_memory[chain->first.result.value] = plan.in_memory[chain->second.product.a.matrix->value.value] = true;
    shape(chain->between, machine, graph, plan.algebra, {});
    steps.push_back(ContractionStep{std::move(chain->first), {}, {}, {}});
    steps.push_back(std::move(chain->between));
    steps.push_back(std::move(chain->second));
  }
  plan.steps = std::move(steps);
}

}  // namespace tenon::cuda
