#include "fusion/plan.h"

#include <algorithm>
#include <iterator>

#include "core/base/error.h"
#include "fusion/early_steps.h"
#include "fusion/joint_launch.h"
#include "fusion/lifetimes.h"
#include "fusion/parallel_reduction.h"
#include "fusion/planner.h"

namespace tenon::codegen {

std::string name_of_node(const ir::Graph& graph, NodeId id) {
  const ir::Node& n = graph.node(id);
  return fmt::format("{} = {}", n.results.empty() ? "" : "%" + graph.value(n.results[0]).name, n.op);
}

void Planner::depend(std::size_t step, std::size_t on) {
  if (runs_after(step, on)) return;
  auto closure = steps_[on].after;
  closure.resize(steps_.size());
  closure.set(on);
  auto join = [&](std::size_t s) {
    steps_[s].after.resize(steps_.size());
    steps_[s].after |= closure;
  };
  join(step);
  steps_[on].needed = true;
  if (!steps_[step].needed) return;
  for (std::size_t s = 0; s < steps_.size(); ++s)
    if (runs_after(s, step)) join(s);
}

std::vector<std::size_t> Planner::writers_of(ValueId value) const {
  std::vector<std::size_t> writers;
  auto add = [&](ValueId v) {
    if (step_of_[v.value] != kNoStep) writers.push_back(step_of_[v.value]);
  };
  if (const Concatenation* whole = whole_[value.value]) std::for_each(whole->parts.begin(), whole->parts.end(), [&](const auto& part) { add(part.value); });
  else add(value);
  return writers;
}

std::size_t Planner::add_step(PendingStep step, std::span<const ValueId> reads, std::span<const ValueId> writes) {
  const std::size_t id = steps_.size();
  steps_.push_back(std::move(step));
  for (ValueId v : reads)
    for (std::size_t writer : writers_of(v))
      if (writer != id) depend(id, writer);
  for (ValueId v : writes) write(v, id);
  schedule(id);
  return id;
}

/// A step that nothing joins.
std::size_t Planner::add_closed(Draft draft, std::span<const ValueId> writes) {
  PendingStep step;
  const auto reads = draft.buffers();
  step.draft = std::make_unique<Draft>(std::move(draft));
  step.closed = true;
  const std::size_t id = add_step(std::move(step), reads, writes);
  note_computed(id, 0);
  return id;
}

/// The step that copies the base of a write, which other steps follow.
std::size_t Planner::add_copy(ValueId base, ValueId result) {
  Draft draft = settled([&] {
    Draft made(context_);
    made.add_copy(base, result, made.make_loops(graph_.type(result).shape, 0));
    return made;
  });
  return add_closed(std::move(draft), std::span(&result, 1));
}

void Planner::place_scatter(NodeId id) {
  const ir::Node& node = graph_.node(id);
  const ops::ScatterBody& body = *scatters_[id.value];
  Draft points = settled([&] {
    Draft made(context_);
    made.add_scatter(body, id);
    return made;
  });
  const std::size_t copy = add_copy(node.operands[body.base], node.results[0]);
  depend(add_closed(std::move(points), node.results), copy);
}

/// Everything that reads the base so far runs before the copy: then that may be left out, where nothing reads the base after it.
void Planner::place_part_write(NodeId id) {
  const ir::Node& node = graph_.node(id);
  const PartWrite& write = *part_writes_[id.value];
  Draft part = settled([&] {
    Draft made(context_);
    made.add_part_write(write, id);
    return made;
  });
  const std::size_t copy = add_copy(write.base, node.results[0]);
  const std::size_t first = step_of_[write.base.value] == kNoStep ? 0 : step_of_[write.base.value] + 1;
  for (std::size_t s = first; s < copy; ++s)
    if (steps_[s].draft && std::ranges::find(steps_[s].draft->buffers(), write.base) != steps_[s].draft->buffers().end()) depend(copy, s);
  if (context_.in_memory[write.source.value])
    for (std::size_t writer : writers_of(write.source)) depend(copy, writer);
  depend(add_closed(std::move(part), node.results), copy);
  log(fmt::format("{} is written to a part of {}", name_of_node(id), graph_.value(write.base).name));
}

/// The product's draft holds what follows it.
void Planner::place_product(NodeId id) {
  PendingStep step;
  step.product = as_product(context_, id);
  TENON_CHECK(step.product, "an operand of a matrix product has moved");
  log(fmt::format("{} is a matrix product", name_of_node(id)));
  for (const ProductOperand* operand : {&step.product->a, &step.product->b}) std::ranges::copy(step.product->reads(*operand), std::back_inserter(step.product_reads));
  const ops::LoopBody& body = *context_.bodies[id.value];
  step.draft = std::make_unique<Draft>(context_);
  step.draft->add_product(id, step.draft->make_loops(std::span(body.extents).first(body.outer()), 0));
  step.closed = !options_.fuse;
  const std::vector<ValueId> reads = step.product_reads;
  add_step(std::move(step), reads, graph_.node(id).results);
}

void Planner::place(NodeId id) {
  const ir::Node& node = graph_.node(id);
  if (is_constant_node(node)) return;
  if (node.results.size() == 1 && context_.place_of(node.results[0]).joined) return;  // its parts are there
  if (library_[id.value]) {
    PendingStep step;
    step.fixed = LibraryStep{id};
    add_step(std::move(step), node.operands, node.results);
    return;
  }
  if (scatters_[id.value]) return place_scatter(id);
  if (part_writes_[id.value]) return place_part_write(id);
  if (!context_.in_memory[node.results[0].value]) return;
  if (product_[id.value]) return place_product(id);
  place_loop(id);
}

/// Counts how often steps other than the one that computes it read a value; outputs count as read.
std::vector<std::size_t> Planner::count_reads() const {
  std::vector<std::size_t> reads(graph_.value_capacity(), 0);
  auto store = [&](ValueId v) { ++reads[v.value]; };
  for (const ir::Output& output : graph_.outputs()) store(output.value);
  for (ValueId check : unread_checks_) store(check);
  for (const Concatenation& c : options_.concatenations)
    for (const auto& part : c.parts) store(part.value);
  for (const PendingStep& s : steps_) {
    std::ranges::for_each(reads_of(s, s.draft.get()), store);
    if (!s.draft) std::ranges::for_each(graph_.node(std::get<LibraryStep>(s.fixed).node).results, store);
  }
  return reads;
}

bool only_stores(const Kernel& kernel, std::span<const ValueId> buffers, ValueId product) {
  if (kernel.stages.size() != 1 || kernel.stages[0].stores.size() != 1) return false;
  const Store& store = kernel.stages[0].stores[0];
  return buffers[store.buffer] == product && kernel.operations[store.value].kind == OperationKind::product;
}

void shape(KernelStep& step, const Machine& machine, const ir::Graph& graph, IndexAlgebra& algebra, const std::function<void(const std::string&)>& log) {
  machine.shape(step.kernel, algebra, [&](double operations, double bytes, double kept) {
    const bool worth = machine.worth_keeping_row(operations, bytes, kept);
    if (log) {
      const std::string last = step.nodes.empty() ? "" : name_of_node(graph, step.nodes.back());
      log(fmt::format("the kernel of {} {} a row of {:.0f} bytes: {:.0f} operations a point, needed by several sweeps", last, worth ? "keeps" : "does not keep", bytes, operations));
    }
    return worth;
  });
  step.buffers.resize(step.kernel.buffers.size(), kRow);
}

/// The product with what follows it.
ContractionStep Planner::product_of(PendingStep& pending, const std::vector<bool>& stored) {
  ContractionStep step{*pending.product, finish(*pending.draft, stored), {}, {}};
  if (step.product.is_result_matrix() && only_stores(step.epilogue->kernel, step.epilogue->buffers, step.product.result)) step.epilogue.reset();
  return step;
}

void Planner::add_to(Plan& plan, std::size_t number, const std::vector<bool>& stored) {
  PendingStep& pending = steps_[number];
  if (!pending.draft) return plan.steps.push_back(std::move(pending.fixed));
  const auto add = [&](KernelStep part) {
    shape(part);
    part.starts = take_out_starts(part.kernel);
    plan.steps.push_back(std::move(part));
  };
  if (combined_[number]) return add(std::move(*combined_[number]));
  KernelStep step = finish(*pending.draft, stored);
  if (step.kernel.stages.empty()) return;
  if (pending.product) {
    ContractionStep product = product_of(pending, stored);
    product.sums = std::move(column_sums_[number]);
    return plan.steps.push_back(std::move(product));
  }
  std::ranges::for_each(split_reduction(std::move(step), algebra_, machine_, plan, graph_), [&](KernelStep& part) { add(std::move(part)); });
}

Plan Planner::assemble() {
  const std::vector<std::size_t> reads = count_reads();
  std::vector<bool> stored(reads.size());
  std::transform(reads.begin(), reads.end(), stored.begin(), [](std::size_t count) { return count > 0; });
  auto chains = find_chains(reads);
  std::vector<bool> inside(steps_.size(), false);  // part of what another step ends
  for (const auto& chain : chains) {
    if (!chain) continue;
    inside[chain->first] = inside[chain->between] = true;
    stored[chain->step.first.result.value] = stored[chain->step.second.product.a.matrix->value.value] = false;
  }
  Plan plan;
  plan.in_memory = stored;
  std::vector<std::optional<Step>> joined(steps_.size());  // by the step that ends it: what is made of several
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    if (inside[s]) continue;
    pause();
    if (chains[s]) {
      ChainStep& chain = chains[s]->step;
      chain.second = product_of(steps_[s], stored);
      joined[s] = std::move(chain);
    } else if (auto pooled = pooled_at(s, reads, stored); pooled && !inside[pooled->product] && !chains[pooled->product]) {
      inside[pooled->product] = true, plan.in_memory[pooled->value.value] = false;
      joined[s] = std::move(pooled->step);
    }
  }
  std::vector<bool> taken = inside;
  for (std::size_t s = 0; s < steps_.size(); ++s) taken[s] = taken[s] || joined[s];
  sum_columns(plan, taken, stored);
  for (std::size_t s : order_) {
    pause();
    if (joined[s]) plan.steps.push_back(std::move(*joined[s]));
    else if (!inside[s]) add_to(plan, s, stored);
  }
  stop_early(plan, graph_);
  update_early(plan, graph_);
  if (options_.fuse) join_launches(plan, graph_, algebra_, machine_, options_);
  plan.algebra = std::move(algebra_);
  return plan;
}

namespace {

/// Values in memory that parts of a step read, or that they write.
struct Uses {
  bool written;
  std::vector<std::size_t> values;

  void add(const KernelStep& part, std::span<const ValueId> buffers) {
    for (std::size_t i = 0; i < buffers.size(); ++i)
      if (!is_local(buffers[i]) && part.kernel.buffers[i].written == written) values.push_back(buffers[i].value);
  }
  void add(const KernelStep& part) {
    add(part, part.buffers);
    for (const auto& buffers : part.others) add(part, buffers);
  }
  void add(const Product& product, const ProductOperand& operand) {
    if (!written)
      for (ValueId v : product.reads(operand)) values.push_back(v.value);
  }
  void add_result(const ContractionStep& step) {
    if (step.epilogue) add(*step.epilogue);
    if (step.pooling) add(step.pooling->kernel);
    else if (!step.epilogue && written) values.push_back(step.product.result.value);
    if (step.sums) add_sums(step);
  }
  /// What the step itself has stored counts as written alone.
  void add_sums(const ContractionStep& step) {
    Uses stored{true, {}}, mine{written, {}};
    if (step.epilogue) stored.add(*step.epilogue);
    else stored.values.push_back(step.product.result.value);
    mine.add(step.sums->kernel);
    std::ranges::copy_if(mine.values, std::back_inserter(values), [&](std::size_t v) { return std::ranges::find(stored.values, v) == stored.values.end(); });
  }
};

}  // namespace

std::vector<std::size_t> values_of(const Step& step, const ir::Graph& graph, bool written) {
  Uses uses{written, {}};
  if (auto* kernel = std::get_if<KernelStep>(&step)) {
    uses.add(*kernel);
  } else if (auto* product = std::get_if<ContractionStep>(&step)) {
    uses.add(product->product, product->product.a), uses.add(product->product, product->product.b), uses.add_result(*product);
  } else if (auto* chain = std::get_if<ChainStep>(&step)) {
    uses.add(chain->first, chain->first.a), uses.add(chain->first, chain->first.b), uses.add(chain->between), uses.add(chain->second.product, chain->second.product.b);
    uses.add_result(chain->second);
    const auto inside = [&](std::size_t v) { return v == chain->first.result.value || v == chain->second.product.a.matrix->value.value; };
    std::erase_if(uses.values, inside);
  } else {
    const ir::Node& node = graph.node(std::get<LibraryStep>(step).node);
    for (ValueId v : written ? node.results : node.operands)
      if (graph.value(v).kind != ir::ValueKind::literal) uses.values.push_back(v.value);
  }
  return uses.values;
}

namespace {

double most_alive(const Plan& plan, const ir::Graph& graph) {
  if (plan.steps.empty()) return 0;
  return std::ranges::max(lives_of(plan, graph, plan.algebra).alive_at_steps(plan.steps.size()));
}

}  // namespace

/// What kernels came to store lives until its last reader, which may wait for the end where it was taken to read something else. Where more would be alive
/// than node by node the graph is planned once more: with that known from the beginning, and so that nothing waits that keeps as much as it has itself.
Plan make_plan(const ir::Graph& graph, const Machine& machine, const PlanOptions& options) {
  Planner first(graph, machine, options);
  Plan plan = first.run();
  const double alive = most_alive(plan, graph);
  if (!options.fuse || alive <= machine.worth_keeping_alive(most_alive_node_by_node(graph, plan.algebra))) return plan;
  if (options.log) options.log(fmt::format("planned again: {:.0f} bytes would be alive at once", alive));
  PlanOptions knowing = options;
  knowing.stored.insert(knowing.stored.end(), first.stored().begin(), first.stored().end());
  knowing.sparing = true;
  Plan other = Planner(graph, machine, knowing).run();
  return most_alive(other, graph) < alive ? std::move(other) : std::move(plan);
}

}  // namespace tenon::codegen
