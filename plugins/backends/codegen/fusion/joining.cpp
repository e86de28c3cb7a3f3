// Which kernel computes what: a node joins the kernel that it reads from where the loops agree, else it opens one of its own.
#include <algorithm>

#include "fusion/planner.h"

namespace tenon::codegen {
namespace {

/// Steps back from the last one that a node may join without reading what they give.
constexpr std::size_t kRecentSteps = 256;

bool is_contiguous(const Draft& draft, SymbolId loop) {
  const auto& operations = draft.operations().all();
  return std::all_of(operations.begin(), operations.end(), [&](const Operation& op) {
    return op.kind != OperationKind::load || is_contiguous_or_fixed(op.offset, loop);
  });
}

}  // namespace

bool rows_fit(const Machine& machine, const IndexAlgebra& algebra, const Draft& draft) {
  std::vector<Loop> outer = draft.outer(), inner = draft.inner();
  if (!outer.empty() && !inner.empty() && !is_contiguous(draft, inner.back().variable) && is_contiguous(draft, outer.back().variable)) {
    const Dim extent = outer.back().extent, block(machine.thresholds.rows_at_once);
    inner.push_back({outer.back().variable, min(extent, block)});
    outer.back().extent = floor_div(extent + block - Dim(1), block);
  }
  return machine.row_stays_near(estimated_points(algebra, outer), estimated_points(algebra, inner));
}

std::vector<std::size_t> Planner::producers_of(const Draft& draft, std::size_t self) const {
  std::vector<std::size_t> producers;
  for (ValueId v : draft.buffers())
    for (std::size_t writer : writers_of(v))
      if (writer != self) producers.push_back(writer);
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
  const std::size_t recent = steps_.size() > kRecentSteps ? steps_.size() - kRecentSteps : 0;
  for (std::size_t s = steps_.size(); s-- > recent && siblings < 3;) {
    if (!steps_[s].draft || steps_[s].closed || steps_[s].product) continue;
    const auto& theirs = steps_[s].draft->buffers();
    const bool shares = std::any_of(theirs.begin(), theirs.end(), [&](ValueId v) {
      return std::find(probe.buffers().begin(), probe.buffers().end(), v) != probe.buffers().end();
    });
    if (shares) add(s), ++siblings;
  }
  return found;
}

namespace {

bool same_extents(std::span<const Loop> loops, std::span<const Dim> extents) {
  return std::equal(loops.begin(), loops.end(), extents.begin(), extents.end(), [](const Loop& l, const Dim& e) { return l.extent == e; });
}

}  // namespace

/// Ways to lay the loops of a map over outer and inner loops of a kernel: each loop over one of them and each kept in order, or all that
/// the map walks over in the order of the outer loops and, where the innermost is contiguous, of inner loops after them (the channels of
/// a group, or all that is in it).
std::vector<std::vector<Dim>> Planner::inner_mappings(const Draft& draft, const ops::LoopBody& body) const {
  std::vector<std::vector<Dim>> found;
  std::vector<Dim> index;
  const auto& outer = draft.outer();
  const auto& inner = draft.inner();
  if (inner.empty()) return found;
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
  if (!found.empty() || !is_contiguous(draft, inner.back().variable)) return found;
  std::vector<Loop> loops = outer;
  loops.insert(loops.end(), inner.begin(), inner.end());
  if (auto in_order = reshaped(loops, body); in_order && in_order->loops > outer.size()) found.push_back(std::move(in_order->index));
  return found;
}

/// Ways to lay the loops of a map over the outer loops of a kernel in another order (channels last), where what a reduction reads comes in
/// runs all the same: along the loop that the map ends with, or along the last inner loop.
std::vector<std::vector<Dim>> Planner::outer_permutations(const Draft& draft, const ops::LoopBody& body) const {
  constexpr std::size_t kMost = 8;
  std::vector<std::vector<Dim>> found;
  const auto& outer = draft.outer();
  const bool any_order = draft.inner().empty() || is_contiguous(draft, draft.inner().back().variable);
  std::vector<Dim> index;
  std::vector<std::size_t> taken;
  auto lay = [&](auto& self, std::size_t loop) -> void {
    if (found.size() == kMost) return;
    if (loop == body.extents.size()) {
      if (taken.size() == outer.size() && !taken.empty() && (any_order || is_contiguous(draft, outer[taken.back()].variable))) found.push_back(index);
      return;
    }
    const auto with = [&](Dim d) {
      index.push_back(std::move(d));
      self(self, loop + 1);
      index.pop_back();
    };
    if (body.extents[loop] == Dim(1)) return with(Dim(0));
    for (std::size_t o = 0; o < outer.size(); ++o) {
      if (!(outer[o].extent == body.extents[loop]) || std::ranges::find(taken, o) != taken.end()) continue;
      taken.push_back(o);
      with(Dim::symbol(outer[o].variable));
      taken.pop_back();
    }
  };
  lay(lay, 0);
  return found;
}

/// The loops of a map that walks over the elements of the first loops of a kernel in the same order, as after a reshape.
std::optional<Planner::Reshaped> Planner::reshaped(std::span<const Loop> loops, const ops::LoopBody& body) const {
  std::vector<Dim> index(body.extents.size(), Dim(0));
  std::size_t l = 0;
  for (std::size_t j = 0; j < body.extents.size();) {
    if (body.extents[j] == Dim(1)) {
      ++j;
      continue;
    }
    if (l == loops.size()) return {};
    const std::size_t first = j;
    Dim ours = loops[l].extent, theirs = body.extents[j++], flat = Dim::symbol(loops[l++].variable);
    while (!(ours == theirs)) {
      const bool widen = algebra_.estimate(ours) < algebra_.estimate(theirs);
      if (widen ? l == loops.size() : j == body.extents.size()) return {};
      if (widen) flat = flat * loops[l].extent + Dim::symbol(loops[l].variable), ours = ours * loops[l].extent, ++l;
      else theirs = theirs * body.extents[j++];
    }
    for (std::size_t i = first; i < j; ++i) {
      Dim size(1);
      for (std::size_t k = i + 1; k < j; ++k) size = size * body.extents[k];
      index[i] = body.extents[i] == Dim(1) ? Dim(0) : algebra_.floor_div(flat, size);
      flat = algebra_.mod(flat, size);
    }
  }
  return Reshaped{std::move(index), l};
}

/// Whether a draft may follow the matrix product of a step, if there is one. Rows of a convolution's result are pixels, and lie side by side.
bool Planner::follows_product(const Draft& draft, std::size_t step) const {
  const auto& product = steps_[step].product;
  if (!product || product->a.windows) return true;
  const ProductSize size = size_of_product(algebra_, *product);
  const auto& users = users_[graph_.node(product->node).results[0].value];
  const bool stored = std::ranges::any_of(users, [&](NodeId user) { return std::ranges::find(draft.nodes(), user) == draft.nodes().end(); });
  const auto read = std::ranges::count_if(draft.buffers(), [&](ValueId v) {
    return v.value < graph_.value_capacity() && !draft.member(v) && 2 * algebra_.estimate(graph_.type(v).element_count()) >= size.rows * size.columns;
  });
  return machine_.worth_following(size, static_cast<std::size_t>(read) + (read > 0 && stored ? 1 : 0));
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
  const std::size_t reductions = attempt->chained_reductions();
  if (!machine_.worth_sweeping(reductions)) {
    log(fmt::format("{} does not join kernel {}: it would pass over its rows once more", name_of_node(id), step));
    return false;
  }
  if (reductions > 1 && !rows_fit(machine_, algebra_, *attempt)) {
    log(fmt::format("{} does not join kernel {}: its rows do not stay near", name_of_node(id), step));
    return false;
  }
  const auto& members = attempt->members();
  const bool maps = std::ranges::any_of(members, [](const Draft::Member& m) { return m.kind == StageKind::map; });
  if (attempt->operations().size() * std::max<std::size_t>(1, reductions + (maps ? 1 : 0)) > machine_.thresholds.kernel_operations) {  // each sweep has its own
    log(fmt::format("{} does not join kernel {}: the kernel would be too long", name_of_node(id), step));
    return false;
  }
  if (!follows_product(*attempt, step)) {
    log(fmt::format("{} does not join kernel {}: it reads too much beside a product", name_of_node(id), step));
    return false;
  }
  const std::size_t passed = steps_[step].draft->expansions().size();
  if (const auto again = computed_again(*attempt, passed, step)) {
    log(fmt::format("{} does not join kernel {}: it would compute {} again", name_of_node(id), step, name_of_node(*again)));
    return false;
  }
  for (std::size_t producer : producers_of(*attempt, step)) {
    if (!runs_after(producer, step)) continue;
    log(fmt::format("{} does not join kernel {}: kernel {} in between needs it", name_of_node(id), step, producer));
    return false;
  }
  const Change change = change_of(step, attempt.get());
  const Reordering order = reordered(change);
  if (const double bytes = most_alive(order, change, now_); bytes > may_live_) {
    log(fmt::format("{} does not join kernel {}: {:.0f} bytes would be alive at once", name_of_node(id), step, bytes));
    return false;
  }
  steps_[step].draft = std::move(attempt);
  steps_[step].last = now_;
  for (std::size_t producer : producers_of(*steps_[step].draft, step)) depend(step, producer);
  for (ValueId r : graph_.node(id).results) write(r, step);
  take(order);
  note_computed(step, passed);
  log(fmt::format("{} joins kernel {}{}", name_of_node(id), step, map_inside ? " over its inner loops" : ""));
  return true;
}

/// A copy into another layout of what was to be stored: a kernel for both would run in the order of the copy.
bool Planner::lays_out_stored(NodeId id) const {
  const ir::Node& node = graph_.node(id);
  if (node.op != "clone" || std::ranges::find(options_.stored, node.operands[0]) == options_.stored.end()) return false;
  return graph_.type(node.operands[0]).resolved_strides() != graph_.type(node.results[0]).resolved_strides();
}

bool Planner::try_join(NodeId id, std::size_t step) {
  const ops::LoopBody& body = *context_.bodies[id.value];
  if (lays_out_stored(id)) return false;
  if (std::ranges::find(body.extents, Dim(0)) != body.extents.end()) return false;  // it has nothing to compute
  const Draft& draft = *steps_[step].draft;
  std::vector<Dim> outer_extents, inner_extents, index;
  for (std::size_t i = 0; i < body.extents.size(); ++i)
    if (!(body.extents[i] == Dim(1))) (i < body.outer() ? outer_extents : inner_extents).push_back(body.extents[i]);
  const auto joins = [&](bool map_inside) { return [&, map_inside](const std::vector<Dim>& mapping) { return mapping != index && try_add(id, step, mapping, map_inside); }; };
  if (steps_[step].product) {
    if (body.reducer) return false;
    const auto found = reshaped(draft.outer(), body);
    if (found && found->loops == draft.outer().size()) index = found->index;
    if (!index.empty() && try_add(id, step, index, false)) return true;
    return machine_.follows_in_any_order() && std::ranges::any_of(outer_permutations(draft, body), joins(false));
  }
  if (same_extents(draft.outer(), outer_extents)) {
    if (body.reducer && (draft.inner().empty() || !same_extents(draft.inner(), inner_extents))) return false;
    std::size_t o = 0, i = 0;
    for (std::size_t l = 0; l < body.extents.size(); ++l) {
      if (body.extents[l] == Dim(1)) index.push_back(Dim(0));
      else index.push_back(Dim::symbol(l < body.outer() ? draft.outer()[o++].variable : draft.inner()[i++].variable));
    }
    if (try_add(id, step, index, false)) return true;
  }
  if (body.reducer) return false;
  if (!draft.inner().empty() && std::ranges::any_of(outer_permutations(draft, body), joins(false))) return true;
  if (same_extents(draft.outer(), outer_extents)) return false;
  const auto mappings = inner_mappings(draft, body);
  if (mappings.empty()) return false;
  if (!rows_fit(machine_, algebra_, draft)) {
    log(fmt::format("{} does not join kernel {}: its rows do not stay near", name_of_node(id), step));
    return false;
  }
  return std::ranges::any_of(mappings, joins(true));
}

PendingStep Planner::kernel_of(NodeId id) {
  const ops::LoopBody& body = *context_.bodies[id.value];
  PendingStep step;
  step.draft = std::make_unique<Draft>(context_);
  const auto index = step.draft->make_loops(body.extents, body.reduced);
  if (body.reducer) step.draft->add_reduction(id, index);
  else step.draft->add_map(id, index, StageKind::row);
  return step;
}

void Planner::open_kernel(NodeId id, PendingStep step) {
  const auto reads = step.draft->buffers();
  const std::size_t made = add_step(std::move(step), reads, graph_.node(id).results);
  note_computed(made, 0);
  log(fmt::format("{} opens kernel {}", name_of_node(id), made));
}

void Planner::place_loop(NodeId id) {
  if (options_.fuse)
    for (std::size_t candidate : candidates(id))
      if (try_join(id, candidate)) return;
  PendingStep step = kernel_of(id);
  const auto again = computed_again(*step.draft, 0, kNoStep);
  if (!again) return open_kernel(id, std::move(step));
  store_computed(*again);
  place_loop(id);  // it may join where that is stored
}

}  // namespace tenon::codegen
