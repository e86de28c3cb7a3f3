#include "fusion/plan.h"

#include <algorithm>
#include <memory>
#include <numeric>

#include "core/base/error.h"
#include "core/ops/catalog.h"
#include "core/ops/node_builder.h"
#include "fusion/contraction.h"
#include "fusion/cost.h"
#include "fusion/parallel_reduction.h"
#include "loops/loop_shaping.h"

namespace tenon::codegen {

void decompose_composites(ir::Graph& graph) {
  std::vector<NodeId> pending(graph.nodes().begin(), graph.nodes().end());
  std::vector<NodeId> replaced;
  for (std::size_t i = 0; i < pending.size(); ++i) {
    const NodeId id = pending[i];
    const ir::Node node = graph.node(id);
    const ops::Op* op = ops::find_op(node.op);
    if (!op || op->body || op->loop || op->scatter || op->kernel || !op->decompose) continue;
    const std::size_t before = graph.node_capacity();
    ops::NodeBuilder builder(graph, id);
    builder.at(node.location);
    const ops::OpQuery query(graph, node.operands, node.attributes);
    std::vector<ValueId> results;
    try {
      results = op->decompose(builder, query);
    } catch (const Exception&) {  // it needs to know sizes: the library computes the node when they are known
      for (std::size_t fresh = before; fresh < graph.node_capacity(); ++fresh) replaced.push_back(NodeId(fresh));
      continue;
    }
    for (std::size_t r = 0; r < results.size(); ++r) graph.replace_uses(node.results[r], results[r]);
    for (std::size_t fresh = before; fresh < graph.node_capacity(); ++fresh) pending.push_back(NodeId(fresh));
    replaced.push_back(id);
  }
  graph.erase_nodes(replaced);
}

namespace {

/// A step under construction, and the steps that must run before it.
struct PendingStep {
  std::unique_ptr<Draft> draft;  // null: `fixed`
  Step fixed;
  std::vector<bool> after;       // by step: transitively
  bool closed = false;           // nothing may join
};

class Planner {
 public:
  Planner(const ir::Graph& graph, const PlanOptions& options)
      : graph_(graph), options_(options), algebra_(graph.symbols()), context_{graph, algebra_, {}, {}} {}

  Plan run() {
    collect_bodies();
    choose_roots();
    for (NodeId id : graph_.nodes()) place(id);
    return assemble();
  }

 private:
  // ---- what lives in memory
  void collect_bodies();
  void choose_roots();
  bool is_large_product(NodeId id) const;
  void mark_contraction_operands(NodeId id);
  ValueId base_through_views(ValueId value) const;
  std::size_t paths_to(NodeId id, const std::vector<std::vector<NodeId>>& users) const;
  void mark_repeated_operands(NodeId id);
  double reach_cost(NodeId id);

  // ---- which kernel computes what
  void place(NodeId id);
  void place_loop(NodeId id);
  bool try_join(NodeId id, std::size_t step);
  bool try_add(NodeId id, std::size_t step, std::span<const Dim> index, bool map_inside);
  std::vector<std::vector<Dim>> inner_mappings(const Draft& draft, const ops::LoopBody& body) const;
  std::vector<std::size_t> candidates(NodeId id) const;
  bool runs_after(std::size_t step, std::size_t other) const {
    return other < steps_[step].after.size() && steps_[step].after[other];
  }
  std::vector<std::size_t> producers_of(const Draft& draft, std::size_t self) const;
  void depend(std::size_t step, std::size_t on);
  std::size_t add_step(PendingStep step, std::span<const ValueId> reads, std::span<const ValueId> writes);
  void log(const std::string& line) const {
    if (options_.log) options_.log(line);
  }
  std::string name_of_node(NodeId id) const {
    const ir::Node& n = graph_.node(id);
    return fmt::format("{} = {}", n.results.empty() ? "" : "%" + graph_.value(n.results[0]).name, n.op);
  }

  Plan assemble();
  KernelStep finish(Draft& draft, const std::vector<bool>& stored) const {
    Kernel kernel = draft.finish(stored);
    return {std::move(kernel), draft.buffers(), draft.nodes()};
  }

  const ir::Graph& graph_;
  const PlanOptions& options_;
  IndexAlgebra algebra_;
  FusionContext context_;
  std::vector<bool> library_;           // by NodeId
  std::vector<std::optional<ops::ScatterBody>> scatters_;
  std::vector<double> cost_;            // by NodeId: of the element with all that is inlined
  std::vector<double> weight_;          // by NodeId: of the node alone; of a view with all that it reads
  std::vector<std::vector<std::uint32_t>> reach_;  // by NodeId: inlined nodes at the same point, sorted
  std::vector<PendingStep> steps_;
  std::vector<std::size_t> step_of_;    // by ValueId: the step that writes it
  static constexpr std::size_t kNoStep = static_cast<std::size_t>(-1);
};

bool is_constant_node(const ir::Node& node) { return node.op == "constant" && node.operands.empty(); }

void Planner::collect_bodies() {
  context_.bodies.resize(graph_.node_capacity());
  context_.in_memory.assign(graph_.value_capacity(), false);
  library_.assign(graph_.node_capacity(), false);
  scatters_.resize(graph_.node_capacity());
  step_of_.assign(graph_.value_capacity(), kNoStep);
  for (NodeId id : graph_.nodes()) {
    const ir::Node& node = graph_.node(id);
    if (is_constant_node(node)) continue;
    context_.bodies[id.value] = ops::loop_of(graph_, id);
    if (context_.bodies[id.value]) continue;
    const ops::Op* op = ops::find_op(node.op);
    TENON_CHECK(op, "no op is named {}", node.op);
    if (op->scatter) scatters_[id.value] = op->scatter(ops::OpQuery(graph_, node.operands, node.attributes));
    else library_[id.value] = true;
  }
}

bool Planner::is_large_product(NodeId id) const {
  const ops::LoopBody& body = *context_.bodies[id.value];
  if (!options_.matrix_kernels || !is_sum_of_products(graph_, id, body)) return false;
  double work = 1;
  for (const Dim& e : body.extents) work *= algebra_.estimate(e);
  return work >= kSmallContraction;
}

ValueId Planner::base_through_views(ValueId value) const {
  for (;;) {
    const ir::Value& v = graph_.value(value);
    if (v.kind != ir::ValueKind::result || context_.in_memory[value.value]) return value;
    const auto& body = context_.bodies[v.node.value];
    if (!body || !is_view(*body) || graph_.node(v.node).operands.size() != 1) return value;
    value = graph_.node(v.node).operands[0];
  }
}

void Planner::mark_contraction_operands(NodeId id) {
  const auto& body = context_.bodies[id.value];
  if (!body || !is_large_product(id)) return;
  const auto before = context_.in_memory;
  for (ValueId operand : graph_.node(id).operands) context_.in_memory[base_through_views(operand).value] = true;
  if (as_contraction(context_, id)) return;
  for (ValueId operand : graph_.node(id).operands) context_.in_memory[operand.value] = true;
  if (!as_contraction(context_, id)) context_.in_memory = before;
}

std::size_t Planner::paths_to(NodeId id, const std::vector<std::vector<NodeId>>& users) const {
  const ir::Node& node = graph_.node(id);
  std::size_t apart = 0;
  bool together = false;
  for (ValueId result : node.results) {
    std::vector<NodeId> distinct = users[result.value];
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    for (NodeId user : distinct) {
      const auto& body = context_.bodies[user.value];
      const bool same_point = body && !body->reducer && !is_view(*body) && graph_.type(graph_.node(user).results[0]).shape == graph_.type(result).shape;
      if (same_point) together = true;
      else ++apart;
    }
  }
  return apart + (together ? 1 : 0);
}

/// Counts the operations that one point of the node takes when everything that is not in memory is expanded. What is read at the
/// same point is shared and counts once; what a view reads elsewhere is computed anew for each view.
double Planner::reach_cost(NodeId id) {
  auto& reach = reach_[id.value];
  double own = own_cost(*context_.bodies[id.value]), elsewhere = 0;
  const bool view = is_view(*context_.bodies[id.value]);
  for (ValueId operand : graph_.node(id).operands) {
    const ir::Value& v = graph_.value(operand);
    if (v.kind != ir::ValueKind::result || context_.in_memory[operand.value] || !context_.bodies[v.node.value]) continue;
    elsewhere += cost_[v.node.value];
    if (view) continue;
    const auto& other = reach_[v.node.value];
    std::vector<std::uint32_t> merged;
    std::set_union(reach.begin(), reach.end(), other.begin(), other.end(), std::back_inserter(merged));
    reach = std::move(merged);
  }
  if (view) own += elsewhere;
  weight_[id.value] = own;
  double cost = own;
  for (std::uint32_t n : reach) cost += weight_[n];
  reach.insert(std::upper_bound(reach.begin(), reach.end(), id.value), id.value);
  return cost;
}

/// Operands that the node would compute again and again (a broadcast, a window, a product) are stored when they cost more than a load.
void Planner::mark_repeated_operands(NodeId id) {
  double points = 1;
  for (const Dim& e : context_.bodies[id.value]->extents) points *= std::max(1.0, algebra_.estimate(e));
  for (ValueId operand : graph_.node(id).operands) {
    const ir::Value& v = graph_.value(operand);
    if (v.kind != ir::ValueKind::result || context_.in_memory[operand.value] || !context_.bodies[v.node.value]) continue;
    const double own_points = std::max(1.0, algebra_.estimate(v.type.element_count()));
    if (!worth_storing_repeated(cost_[v.node.value], points / own_points)) continue;
    log(fmt::format("store %{}: {} reads it {:.0f} times over and it costs {:.0f} operations", v.name, graph_.node(id).op,
                    points / own_points, cost_[v.node.value]));
    context_.in_memory[operand.value] = true;
  }
}

void Planner::choose_roots() {
  auto keep = [&](ValueId v) { context_.in_memory[v.value] = true; };
  for (const ir::Output& output : graph_.outputs()) keep(output.value);
  for (ValueId input : graph_.inputs()) keep(input);
  for (NodeId id : graph_.nodes()) {
    const ir::Node& node = graph_.node(id);
    const auto& body = context_.bodies[id.value];
    const bool library = library_[id.value];
    if (!body || body->reducer || library || !options_.fuse)
      for (ValueId r : node.results) keep(r);
    if (library)
      for (ValueId operand : node.operands)
        if (graph_.value(operand).kind != ir::ValueKind::literal) keep(operand);
  }
  for (NodeId id : graph_.nodes()) {
    const auto& results = graph_.node(id).results;
    const bool any = std::any_of(results.begin(), results.end(), [&](ValueId r) { return context_.in_memory[r.value]; });
    if (any) std::for_each(results.begin(), results.end(), keep);
  }
  for (NodeId id : graph_.nodes()) mark_contraction_operands(id);
  const auto users = graph_.users();
  cost_.assign(graph_.node_capacity(), 0);
  weight_.assign(graph_.node_capacity(), 0);
  reach_.resize(graph_.node_capacity());
  for (NodeId id : graph_.nodes()) {
    if (!context_.bodies[id.value]) continue;
    mark_repeated_operands(id);
    const double cost = cost_[id.value] = reach_cost(id);
    const ir::Node& node = graph_.node(id);
    if (context_.in_memory[node.results[0].value]) continue;
    const std::size_t paths = paths_to(id, users);
    const bool large = cost > kMaxInlinedCost;
    if (!large && !worth_storing(cost, paths)) continue;
    log(fmt::format("store %{}: {} at {:.0f} operations", graph_.value(node.results[0]).name,
                    large ? "its expression is long," : fmt::format("read in {} places,", paths), cost));
    for (ValueId r : node.results) keep(r);
  }
}

void Planner::depend(std::size_t step, std::size_t on) {
  auto join = [](std::vector<bool>& into, const std::vector<bool>& from) {
    if (into.size() < from.size()) into.resize(from.size());
    for (std::size_t i = 0; i < from.size(); ++i)
      if (from[i]) into[i] = true;
  };
  std::vector<bool> closure = steps_[on].after;
  if (closure.size() <= on) closure.resize(on + 1);
  closure[on] = true;
  join(steps_[step].after, closure);
  for (std::size_t s = 0; s < steps_.size(); ++s)
    if (runs_after(s, step)) join(steps_[s].after, closure);
}

std::size_t Planner::add_step(PendingStep step, std::span<const ValueId> reads, std::span<const ValueId> writes) {
  const std::size_t id = steps_.size();
  steps_.push_back(std::move(step));
  for (ValueId v : reads)
    if (step_of_[v.value] != kNoStep && step_of_[v.value] != id) depend(id, step_of_[v.value]);
  for (ValueId v : writes) step_of_[v.value] = id;
  return id;
}

std::vector<std::size_t> Planner::producers_of(const Draft& draft, std::size_t self) const {
  std::vector<std::size_t> producers;
  for (ValueId v : draft.buffers())
    if (step_of_[v.value] != kNoStep && step_of_[v.value] != self) producers.push_back(step_of_[v.value]);
  return producers;
}

/// The kernels that a node may join: those it reads from, latest first, then recent ones over the same loops.
std::vector<std::size_t> Planner::candidates(NodeId id) const {
  std::vector<std::size_t> found;
  auto add = [&](std::size_t s) {
    if (s != kNoStep && steps_[s].draft && !steps_[s].closed && std::find(found.begin(), found.end(), s) == found.end()) found.push_back(s);
  };
  Draft probe(context_);
  const ops::LoopBody& body = *context_.bodies[id.value];
  const auto index = probe.make_loops(body.extents, body.reduced);
  if (body.reducer) probe.add_reduction(id, index);
  else probe.add_map(id, index, StageKind::row);
  for (ValueId v : probe.buffers()) add(step_of_[v.value]);
  std::sort(found.rbegin(), found.rend());
  std::size_t siblings = 0;
  for (std::size_t s = steps_.size(); s-- > 0 && siblings < 3;) {
    if (!steps_[s].draft || steps_[s].closed) continue;
    const auto& theirs = steps_[s].draft->buffers();
    const bool shares = std::any_of(theirs.begin(), theirs.end(), [&](ValueId v) {
      return std::find(probe.buffers().begin(), probe.buffers().end(), v) != probe.buffers().end();
    });
    if (shares) add(s), ++siblings;
  }
  return found;
}

bool same_extents(std::span<const Loop> loops, std::span<const Dim> extents) {
  return std::equal(loops.begin(), loops.end(), extents.begin(), extents.end(), [](const Loop& l, const Dim& e) { return l.extent == e; });
}

/// Ways to lay the loops of a map over outer and inner loops of a kernel, each kept in order.
std::vector<std::vector<Dim>> Planner::inner_mappings(const Draft& draft, const ops::LoopBody& body) const {
  std::vector<std::vector<Dim>> found;
  std::vector<Dim> index;
  const auto& outer = draft.outer();
  const auto& inner = draft.inner();
  auto lay = [&](auto& self, std::size_t loop, std::size_t o, std::size_t i) -> void {
    if (found.size() > 16) return;
    if (loop == body.extents.size()) {
      if (o == outer.size() && i == inner.size()) found.push_back(index);
      return;
    }
    auto with = [&](Dim d, std::size_t next_o, std::size_t next_i) {
      index.push_back(std::move(d));
      self(self, loop + 1, next_o, next_i);
      index.pop_back();
    };
    if (body.extents[loop] == Dim(1)) return with(Dim(0), o, i);
    if (o < outer.size() && outer[o].extent == body.extents[loop]) with(Dim::symbol(outer[o].variable), o + 1, i);
    if (i < inner.size() && inner[i].extent == body.extents[loop]) with(Dim::symbol(inner[i].variable), o, i + 1);
  };
  lay(lay, 0, 0, 0);
  return found;
}

bool Planner::try_add(NodeId id, std::size_t step, std::span<const Dim> index, bool map_inside) {
  auto attempt = std::make_unique<Draft>(*steps_[step].draft);
  try {
    if (context_.bodies[id.value]->reducer) attempt->add_reduction(id, index);
    else attempt->add_map(id, index, map_inside ? StageKind::map : StageKind::row);
  } catch (const NotFusable& reason) {
    log(fmt::format("{} does not join kernel {}: {}", name_of_node(id), step, reason.what()));
    return false;
  }
  if (attempt->operations().size() > kMaxKernelOperations) {
    log(fmt::format("{} does not join kernel {}: the kernel would be too long", name_of_node(id), step));
    return false;
  }
  for (std::size_t producer : producers_of(*attempt, step)) {
    if (!runs_after(producer, step)) continue;
    log(fmt::format("{} does not join kernel {}: kernel {} in between needs it", name_of_node(id), step, producer));
    return false;
  }
  steps_[step].draft = std::move(attempt);
  for (std::size_t producer : producers_of(*steps_[step].draft, step)) depend(step, producer);
  for (ValueId r : graph_.node(id).results) step_of_[r.value] = step;
  log(fmt::format("{} joins kernel {}{}", name_of_node(id), step, map_inside ? " over its inner loops" : ""));
  return true;
}

bool Planner::try_join(NodeId id, std::size_t step) {
  const ops::LoopBody& body = *context_.bodies[id.value];
  const Draft& draft = *steps_[step].draft;
  std::vector<Dim> outer_extents, inner_extents, index;
  for (std::size_t i = 0; i < body.extents.size(); ++i)
    if (!(body.extents[i] == Dim(1))) (i < body.outer() ? outer_extents : inner_extents).push_back(body.extents[i]);
  if (!body.reducer && !same_extents(draft.outer(), outer_extents)) {
    if (draft.inner().empty() || draft.outer().size() + draft.inner().size() != outer_extents.size()) return false;
    if (!row_fits(algebra_, draft.outer(), draft.inner())) {
      log(fmt::format("{} does not join kernel {}: its rows do not stay in cache", name_of_node(id), step));
      return false;
    }
    for (const auto& mapping : inner_mappings(draft, body))
      if (try_add(id, step, mapping, true)) return true;
    return false;
  }
  if (!same_extents(draft.outer(), outer_extents)) return false;
  if (body.reducer) {
    if (draft.inner().empty() || !same_extents(draft.inner(), inner_extents)) return false;
    const bool reads_it = [&] {
      for (const auto& m : draft.members())
        if (m.kind == StageKind::reduce) return true;
      return false;
    }();
    if (reads_it && !row_fits(algebra_, draft.outer(), draft.inner())) return false;
  }
  std::size_t o = 0, i = 0;
  for (std::size_t l = 0; l < body.extents.size(); ++l) {
    if (body.extents[l] == Dim(1)) index.push_back(Dim(0));
    else index.push_back(Dim::symbol(l < body.outer() ? draft.outer()[o++].variable : draft.inner()[i++].variable));
  }
  return try_add(id, step, index, false);
}

void Planner::place_loop(NodeId id) {
  if (options_.fuse)
    for (std::size_t candidate : candidates(id))
      if (try_join(id, candidate)) return;
  const ops::LoopBody& body = *context_.bodies[id.value];
  PendingStep step;
  step.draft = std::make_unique<Draft>(context_);
  const auto index = step.draft->make_loops(body.extents, body.reduced);
  if (body.reducer) step.draft->add_reduction(id, index);
  else step.draft->add_map(id, index, StageKind::row);
  const auto reads = step.draft->buffers();
  const std::size_t made = add_step(std::move(step), reads, graph_.node(id).results);
  log(fmt::format("{} opens kernel {}", name_of_node(id), made));
}

void Planner::place(NodeId id) {
  const ir::Node& node = graph_.node(id);
  if (is_constant_node(node)) return;
  if (library_[id.value]) {
    PendingStep step;
    step.fixed = LibraryStep{id};
    add_step(std::move(step), node.operands, node.results);
    return;
  }
  if (scatters_[id.value]) {
    const ops::ScatterBody& body = *scatters_[id.value];
    const ir::Type& type = graph_.type(node.results[0]);
    PendingStep copy, points;
    copy.draft = std::make_unique<Draft>(context_);
    copy.draft->add_copy(node.operands[body.base], node.results[0], copy.draft->make_loops(type.shape, 0));
    const auto copy_reads = copy.draft->buffers();
    const std::size_t first = add_step(std::move(copy), copy_reads, node.results);
    points.draft = std::make_unique<Draft>(context_);
    points.draft->add_scatter(body, id);
    const auto reads = points.draft->buffers();
    const std::size_t second = add_step(std::move(points), reads, node.results);
    depend(second, first);
    steps_[first].closed = steps_[second].closed = true;
    return;
  }
  if (!context_.in_memory[node.results[0].value]) return;
  if (is_large_product(id)) {
    auto product = as_contraction(context_, id);
    if (product && !rows_are_dot_products(*product)) {
      log(fmt::format("{} is a matrix product", name_of_node(id)));
      const ValueId reads[] = {product->a.value, product->b.value};
      PendingStep step;
      step.fixed = std::move(*product);
      add_step(std::move(step), reads, node.results);
      return;
    }
  }
  place_loop(id);
}

Plan Planner::assemble() {
  std::vector<bool> stored(graph_.value_capacity(), false);
  for (const ir::Output& output : graph_.outputs()) stored[output.value.value] = true;
  for (const PendingStep& s : steps_) {
    if (s.draft) {
      for (ValueId v : s.draft->buffers())
        if (!s.draft->member(v)) stored[v.value] = true;
    } else if (auto* product = std::get_if<ContractionStep>(&s.fixed)) {
      stored[product->a.value.value] = stored[product->b.value.value] = stored[product->c.value] = true;
    } else {
      const ir::Node& node = graph_.node(std::get<LibraryStep>(s.fixed).node);
      for (ValueId v : node.operands) stored[v.value] = true;
      for (ValueId v : node.results) stored[v.value] = true;
    }
  }
  std::vector<std::size_t> order(steps_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  auto depth = [&](std::size_t s) { return std::count(steps_[s].after.begin(), steps_[s].after.end(), true); };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return depth(a) < depth(b); });
  Plan plan;
  plan.in_memory = stored;
  for (std::size_t s : order) {
    if (!steps_[s].draft) {
      plan.steps.push_back(std::move(steps_[s].fixed));
      continue;
    }
    KernelStep step = finish(*steps_[s].draft, stored);
    if (step.kernel.stages.empty()) continue;
    for (KernelStep& part : split_for_threads(std::move(step), algebra_, plan, graph_)) {
      shape_loops(part.kernel, algebra_, options_.lanes);
      plan.steps.push_back(std::move(part));
    }
  }
  return plan;
}

}  // namespace

Plan make_plan(const ir::Graph& graph, const PlanOptions& options) { return Planner(graph, options).run(); }

}  // namespace tenon::codegen
