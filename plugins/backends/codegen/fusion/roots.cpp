// What lives in memory: outputs, results of reductions, operands of matrix products, and what is dear and read in several places.
#include <algorithm>
#include <limits>
#include <ranges>

#include "core/base/error.h"
#include "core/ops/catalog.h"
#include "core/ops/view.h"
#include "drafts/cost.h"
#include "drafts/operand.h"
#include "fusion/lifetimes.h"
#include "fusion/planner.h"

namespace tenon::codegen {

void Planner::collect_bodies() {
  context_.bodies.resize(graph_.node_capacity());
  context_.in_memory.assign(graph_.value_capacity(), false);
  context_.packs_left.assign(graph_.node_capacity(), false);
  library_.assign(graph_.node_capacity(), false);
  product_.assign(graph_.node_capacity(), false);
  scatters_.resize(graph_.node_capacity());
  step_of_.assign(graph_.value_capacity(), kNoStep);
  part_writes_.resize(graph_.node_capacity());
  if (options_.fuse) part_writes_ = part_writes(graph_, algebra_, machine_);
  for (NodeId id : graph_.nodes()) {
    const ir::Node& node = graph_.node(id);
    if (is_constant_node(node) || part_writes_[id.value]) continue;
    context_.bodies[id.value] = ops::loop_of(graph_, id);
    if (context_.bodies[id.value]) continue;
    const ops::Op* op = ops::find_op(node.op);
    TENON_CHECK(op, "no op is named {}", node.op);
    if (op->scatter) scatters_[id.value] = op->scatter(ops::OpQuery(graph_, node.operands, node.attributes));
    else library_[id.value] = true;
  }
}

void Planner::place_concatenations() {
  whole_.assign(graph_.value_capacity(), nullptr);
  if (!options_.concatenations.empty()) context_.lying.resize(graph_.value_capacity());
  for (const Concatenation& c : options_.concatenations) {
    whole_[c.whole.value] = &c;
    for (ValueId value : c.beginnings) context_.lying[value.value] = Lying{c.whole, Dim(0), true}, context_.in_memory[value.value] = true;
    for (const auto& [value, offset] : c.parts) {
      context_.lying[value.value] = Lying{c.whole, offset}, context_.in_memory[value.value] = true;
      log(fmt::format("%{} is written into %{}", graph_.value(value).name, graph_.value(c.whole).name));
    }
  }
}

/// The points of a node's loops, at a guess: of a product, its multiplications.
double Planner::points_of(NodeId id) const {
  double points = 1;
  for (const Dim& e : context_.bodies[id.value]->extents) points *= algebra_.estimate(e);
  return points;
}

bool Planner::is_large_product(NodeId id) const {
  const ops::LoopBody& body = *context_.bodies[id.value];
  if (!options_.matrix_kernels || !is_sum_of_products(graph_, id, body)) return false;
  const double work = points_of(id);
  const std::vector<Dim>& shape = graph_.type(graph_.node(id).results[0]).shape;
  const bool over_windows = body.extents.size() > shape.size() + 1;
  const double columns = shape.empty() ? std::numeric_limits<double>::infinity() : algebra_.estimate(shape.back());
  return machine_.is_large_product(work, over_windows, columns);
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

/// What is stored where an operand is written for a product: half precision before it is cast, where that is multiplied as it lies.
ValueId Planner::written_for_product(ValueId operand) const {
  const auto half = half_before_cast(graph_, operand);
  return half && machine_.multiplies(graph_.type(*half).dtype) ? *half : operand;
}

/// The operations of a value's element when all of its points are computed from memory alike; too many where they are not, or where a
/// product before it can finish them with its result.
double Planner::cost_from_memory(ValueId value, const ir::Type& type) const {
  const ir::Value& v = graph_.value(value);
  if (v.kind != ir::ValueKind::result || !(graph_.type(value).shape == type.shape)) return 0;
  if (context_.in_memory[value.value]) return product_[v.node.value] ? machine_.thresholds.inlined_cost : 0;
  const auto& body = context_.bodies[v.node.value];
  if (!body || body->reducer || is_view(*body)) return machine_.thresholds.inlined_cost;
  double cost = own_cost(*body);
  for (ValueId operand : graph_.node(v.node).operands) cost += cost_from_memory(operand, type);
  return cost;
}

/// True when the left operand is computed point by point for this product alone, which reads each element once for all columns.
bool Planner::is_prologue(NodeId product, const std::vector<std::vector<NodeId>>& users) const {
  const ir::Node& node = graph_.node(product);
  const ir::Value& left = graph_.value(node.operands[0]);
  if (!options_.fuse || left.kind != ir::ValueKind::result || context_.in_memory[node.operands[0].value] || users[node.operands[0].value].size() != 1) return false;
  const double work = points_of(product);
  double elements = 1;
  for (ValueId v : {node.operands[0], node.operands[1], node.results[0]}) elements *= algebra_.estimate(graph_.type(v).element_count());
  const double rows = work / std::max(1.0, algebra_.estimate(graph_.type(node.operands[1]).element_count()));
  if (elements != work * work || rows < machine_.thresholds.rows_with_prologue) return false;
  const double cost = cost_from_memory(node.operands[0], graph_.type(node.operands[0]));
  return cost > 0 && cost < machine_.thresholds.dear_prologue;
}

bool Planner::try_prologue(NodeId id) {
  const auto before = context_.in_memory;
  context_.packs_left[id.value] = product_[id.value] = true;
  context_.in_memory[base_through_views(graph_.node(id).operands[1]).value] = true;
  const auto product = as_product(context_, id);
  if (product && product->a.is_computed() && !product->b.is_computed() && product->batch.empty()) {
    log(fmt::format("{} computes its left operand while packing it", name_of_node(id)));
    return true;
  }
  context_.packs_left[id.value] = product_[id.value] = false;
  context_.in_memory = before;
  return false;
}

/// True where an operand is computed or of a dtype in memory that is converted for the product, and each of its elements is multiplied so few times that writing all of
/// them as the kernel reads them costs more than computing them then: a large weight in half precision beside a few rows.
bool Planner::has_operand_dear_to_write(NodeId product) const {
  const double work = points_of(product);
  const auto operands = graph_.node(product).operands;
  const auto dtype_of_base = [&](ValueId operand) { return graph_.type(base_through_views(operand)).dtype; };
  const bool alike = dtype_of_base(operands[0]) == dtype_of_base(operands[1]) && machine_.multiplies(dtype_of_base(operands[0]));
  return std::ranges::any_of(operands, [&](ValueId operand) {
    const ValueId base = base_through_views(operand);
    const bool lies = context_.in_memory[base.value] && (alike || graph_.type(base).dtype == graph_.type(operand).dtype);
    return !lies && work < machine_.thresholds.rows_that_pay * algebra_.estimate(graph_.type(operand).element_count());
  });
}

void Planner::mark_contraction_operands(NodeId id, const std::vector<std::vector<NodeId>>& users) {
  const auto& body = context_.bodies[id.value];
  if (!body || !is_large_product(id) || has_operand_dear_to_write(id)) return;
  if (is_prologue(id, users) && try_prologue(id)) return;
  const auto before = context_.in_memory;
  auto attempt = [&] {
    auto product = as_product(context_, id);
    return product && machine_.worth_matrix_kernel(size_of_product(algebra_, *product)) ? std::move(product) : std::nullopt;
  };
  product_[id.value] = true;
  for (ValueId operand : graph_.node(id).operands) context_.in_memory[base_through_views(operand).value] = true;
  const auto through_views = attempt();
  if (through_views && !through_views->a.is_computed() && !through_views->b.is_computed()) return;
  const auto bases = context_.in_memory;
  const std::span<const ValueId> operands = graph_.node(id).operands;
  for (const auto written : {operands.first(1), operands.subspan(1), operands}) {  // not a large weight for the sake of a few rows
    context_.in_memory = bases;
    for (ValueId operand : written) context_.in_memory[written_for_product(operand).value] = true;
    const auto stored = attempt();
    const bool all = written.size() == operands.size(), in_place = stored && !stored->a.is_computed() && !stored->b.is_computed();
    if (stored && (all || in_place) && (!through_views || stored->a.windows || stored->b.windows)) return;
  }
  context_.in_memory = through_views ? bases : before;
  product_[id.value] = through_views.has_value();
}

/// What follows a product point by point, reshaped or not, up to a reduction is stored in the product's place: the reduction passes over
/// it several times, and what is added to it (a shortcut) would be added again by every reader.
void Planner::mark_end_of_product(NodeId id, const std::vector<std::vector<NodeId>>& users) {
  const ValueId product = graph_.node(id).results[0];
  ValueId end = product;
  auto next = [&]() -> std::optional<ValueId> {
    const auto& readers = users[end.value];
    if (readers.empty() || std::any_of(readers.begin(), readers.end(), [&](NodeId u) { return u != readers[0]; })) return {};
    const auto& body = context_.bodies[readers[0].value];
    const auto& results = graph_.node(readers[0]).results;
    if (!body || body->reducer || results.size() != 1 || context_.in_memory[results[0].value]) return {};
    if (is_view(*body)) return graph_.node(readers[0]).op == "reshape" ? std::optional(results[0]) : std::nullopt;
    return graph_.type(results[0]).shape == graph_.type(end).shape ? std::optional(results[0]) : std::nullopt;
  };
  while (auto after = next()) end = *after;
  const auto& readers = users[end.value];
  const bool reduced = std::any_of(readers.begin(), readers.end(), [&](NodeId u) { return context_.bodies[u.value] && context_.bodies[u.value]->reducer; });
  if (end == product || !reduced) return;
  log(fmt::format("store %{}: it follows a product and is reduced", graph_.value(end).name));
  context_.in_memory[end.value] = true;
}

namespace {

/// How often a node loads an operand for an element, at places that it computes: not at its own point, as far as that has the dimension.
std::size_t loads_elsewhere(const ops::LoopBody& body, std::size_t operand) {
  const ops::ScalarProgram& program = body.element;
  const auto moves = [&](const ops::Instruction& i) {
    const auto* index = program.indices.data() + i.first_index;
    return std::any_of(index, index + i.index_count, [&](std::uint32_t r) {
      const ops::Primitive op = program.instructions[r].op;
      return op != ops::Primitive::loop_index && op != ops::Primitive::constant;
    });
  };
  return static_cast<std::size_t>(std::ranges::count_if(program.instructions, [&](const ops::Instruction& i) { return i.op == ops::Primitive::load && i.payload == operand && moves(i); }));
}

}  // namespace

/// True when the node reads an operand of its own shape where it stands, so that it can be computed with it.
bool Planner::reads_at_its_point(NodeId id, ValueId value) const {
  const auto& body = context_.bodies[id.value];
  const ir::Node& node = graph_.node(id);
  if (!body || body->reducer || is_view(*body) || !(graph_.type(node.results[0]).shape == graph_.type(value).shape)) return false;
  for (std::size_t k = 0; k < node.operands.size(); ++k)
    if (node.operands[k] == value && loads_elsewhere(*body, k)) return false;
  return true;
}

/// True when all that is made of the node's result, point by point, is read elsewhere in the end: who shifts a clipped value computes what was
/// clipped in another place.
bool Planner::is_moved(NodeId id, const std::vector<std::vector<NodeId>>& users, std::size_t most) const {
  const auto& results = graph_.node(id).results;
  if (results.size() != 1 || context_.in_memory[results[0].value] || users[results[0].value].empty()) return false;
  return std::ranges::all_of(users[results[0].value], [&](NodeId user) {
    const auto& body = context_.bodies[user.value];
    return body && !body->reducer && (!reads_at_its_point(user, results[0]) || (most > 1 && is_moved(user, users, most - 1)));
  });
}

std::size_t Planner::paths_to(NodeId id, const std::vector<std::vector<NodeId>>& users) const {
  constexpr std::size_t kLongestWay = 4;  // nodes that are looked through
  const ir::Node& node = graph_.node(id);
  std::size_t apart = 0;
  bool together = false;
  for (ValueId result : node.results) {
    std::vector<NodeId> distinct = users[result.value];
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    for (NodeId user : distinct) {
      if (reads_at_its_point(user, result) && !is_moved(user, users, kLongestWay)) together = true;
      else ++apart;
    }
  }
  return apart + (together ? 1 : 0);
}

/// Counts the operations that one point of the node takes when everything that is not in memory is expanded. What is read at the
/// same point is shared and counts once; what is read elsewhere is computed anew by each that reads it there.
double Planner::reach_cost(NodeId id) {
  auto& reach = reach_[id.value];
  const ops::LoopBody& body = *context_.bodies[id.value];
  const std::span<const ValueId> operands = graph_.node(id).operands;
  double own = own_cost(body);
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const ir::Value& v = graph_.value(operands[k]);
    if (v.kind != ir::ValueKind::result || context_.in_memory[operands[k].value] || !context_.bodies[v.node.value]) continue;
    const std::size_t elsewhere = is_view(body) ? 1 : loads_elsewhere(body, k);
    own += static_cast<double>(elsewhere) * cost_[v.node.value];
    if (elsewhere) continue;
    const auto& other = reach_[v.node.value];
    std::vector<std::uint32_t> merged;
    std::set_union(reach.begin(), reach.end(), other.begin(), other.end(), std::back_inserter(merged));
    reach = std::move(merged);
  }
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
    if (context_.packs_left[id.value] && operand == graph_.node(id).operands[0]) continue;  // a prologue: read once
    const double parts = is_complex(graph_.type(operand).dtype) ? 2 : 1;  // which points read one at a time
    const double own_points = std::max(1.0, parts * algebra_.estimate(graph_.type(operand).element_count()));
    if (!machine_.worth_storing_repeated(cost_[v.node.value], points / own_points)) continue;
    log(fmt::format("store %{}: {} reads it {:.0f} times over and it costs {:.0f} operations", v.name, graph_.node(id).op,
                    points / own_points, cost_[v.node.value]));
    context_.in_memory[operand.value] = true;
  }
}

/// Operands for whose sake others would stay alive, while new values take memory, are computed early.
void Planner::mark_early_operands(NodeId id, const Lifetimes& lifetimes) {
  for (ValueId operand : graph_.node(id).operands) {
    const double kept = lifetimes.kept_for(operand), bytes = lifetimes.bytes_of(operand);
    if (kept == 0 || !(options_.sparing ? kept >= bytes : machine_.worth_storing_early(bytes, kept))) continue;
    log(fmt::format("store %{}: {:.0f} bytes would be kept for it", graph_.value(operand).name, kept));
    context_.in_memory[operand.value] = true;
  }
}

void Planner::mark_scattered_operands(NodeId id) {
  for (ValueId operand : graph_.node(id).operands) {
    const ir::Value& v = graph_.value(operand);
    if (v.kind != ir::ValueKind::result || context_.in_memory[operand.value] || !machine_.worth_storing_scattered(cost_[v.node.value])) continue;
    log(fmt::format("store %{}: {} runs one point at a time and it costs {:.0f} operations", v.name, graph_.node(id).op, cost_[v.node.value]));
    context_.in_memory[operand.value] = true;
  }
}

/// Readers come first: a chain of choices has more ways through it than nodes.
void Planner::find_what_feeds_products(const std::vector<std::vector<NodeId>>& users) {
  feeds_product_ = product_;
  for (NodeId id : graph_.nodes() | std::views::reverse) {
    const auto passes_on = [&](NodeId u) { return product_[u.value] || (feeds_product_[u.value] && context_.bodies[u.value] && is_view(*context_.bodies[u.value])); };
    const auto& results = graph_.node(id).results;
    if (!results.empty() && std::ranges::any_of(users[results[0].value], passes_on)) feeds_product_[id.value] = true;
  }
}

/// A sum of whole tensors that goes into a product and on beside it: each sum after it would read all that it is made of once more.
bool Planner::is_shortcut(NodeId id, const std::vector<std::vector<NodeId>>& users) const {
  const ir::Node& node = graph_.node(id);
  const auto& shape = graph_.type(node.results[0]).shape;
  const auto whole = std::ranges::count_if(node.operands, [&](ValueId v) { return graph_.value(v).kind != ir::ValueKind::literal && graph_.type(v).shape == shape; });
  std::vector<NodeId> distinct = users[node.results[0].value];
  std::ranges::sort(distinct);
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  return whole >= 2 && node.results.size() == 1 && distinct.size() >= 2 && std::ranges::any_of(distinct, [&](NodeId u) { return feeds_product_[u.value]; });
}

/// True when what computes the value, down to memory, reads that memory; also when it is too much to look through.
bool Planner::reads_from(ValueId value, ValueId memory) const {
  constexpr std::size_t kMostValues = 64;
  std::vector<ValueId> seen{value};
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (seen[i] == memory || seen.size() > kMostValues) return true;
    const ir::Value& v = graph_.value(seen[i]);
    if (v.kind != ir::ValueKind::result || context_.in_memory[seen[i].value]) continue;
    for (ValueId operand : graph_.node(v.node).operands)
      if (std::ranges::find(seen, operand) == seen.end()) seen.push_back(operand);
  }
  return false;
}

/// True when computing what the node gives is little more than loading it: few operations on elements of one value in memory.
bool Planner::is_load_of_another(NodeId id, double cost) const {
  if (machine_.worth_storing_repeated(cost, 2)) return false;
  const double own = points_of(id);
  std::vector<ValueId> seen{graph_.node(id).results[0]};
  std::size_t loaded = 0;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const ir::Value& v = graph_.value(seen[i]);
    if (v.kind == ir::ValueKind::literal || algebra_.estimate(graph_.type(seen[i]).element_count()) < own) continue;
    if (v.kind != ir::ValueKind::result || context_.in_memory[seen[i].value]) {
      ++loaded;
      continue;
    }
    for (ValueId operand : graph_.node(v.node).operands)
      if (std::ranges::find(seen, operand) == seen.end()) seen.push_back(operand);
  }
  return loaded == 1;
}

/// What may raise is computed also where nothing reads it: an index out of range, of whose elements the program makes no use. A number lies in memory,
/// so that it is known whether it raises before whatever takes it begins (stop_early).
void Planner::keep_checks(const std::vector<std::vector<NodeId>>& users) {
  for (NodeId id : graph_.nodes()) {
    const ops::Op* op = ops::find_op(graph_.node(id).op);
    if (!op || !op->traits.may_raise) continue;
    for (ValueId result : graph_.node(id).results) {
      const bool unread = users[result.value].empty();
      if (context_.in_memory[result.value] || (!unread && graph_.type(result).rank() > 0)) continue;
      context_.in_memory[result.value] = true;
      if (unread) unread_checks_.push_back(result);
    }
  }
}

void Planner::choose_roots() {
  auto keep = [&](ValueId v) { context_.in_memory[v.value] = true; };
  for (const ir::Output& output : graph_.outputs()) keep(output.value);
  for (ValueId input : graph_.inputs()) keep(input);
  std::ranges::for_each(options_.stored, keep);
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
  const auto users = graph_.users();
  keep_checks(users);
  for (NodeId id : graph_.nodes())
    if (const auto& write = part_writes_[id.value]; write && (users[write->source.value].size() > 1 || reads_from(write->source, write->base))) keep(write->source);
  for (NodeId id : graph_.nodes()) mark_contraction_operands(id, users);
  for (NodeId id : graph_.nodes())
    if (product_[id.value] && !leads_to_product(id, users)) mark_end_of_product(id, users);
  find_what_feeds_products(users);
  cost_.assign(graph_.node_capacity(), 0);
  weight_.assign(graph_.node_capacity(), 0);
  reach_.resize(graph_.node_capacity());
  Lifetimes lifetimes(graph_, algebra_, context_);
  for (NodeId id : graph_.nodes()) {
    pause();
    if (options_.fuse) mark_early_operands(id, lifetimes);
    if (scatters_[id.value] && options_.fuse) mark_scattered_operands(id);
    if (context_.bodies[id.value]) decide_on(id, users);
    lifetimes.pass(id);
  }
}

/// Puts what the node gives into memory where that is cheaper than computing it in each place where it is read.
void Planner::decide_on(NodeId id, const std::vector<std::vector<NodeId>>& users) {
  mark_repeated_operands(id);
  const double cost = cost_[id.value] = reach_cost(id);
  const ir::Node& node = graph_.node(id);
  if (context_.in_memory[node.results[0].value]) return;
  const std::size_t paths = paths_to(id, users);
  const bool large = cost > machine_.thresholds.inlined_cost;
  const bool shortcut = is_shortcut(id, users);
  if (!large && !shortcut && (!machine_.worth_storing(cost, paths) || is_load_of_another(id, cost))) return;
  log(fmt::format("store %{}: {} at {:.0f} operations", graph_.value(node.results[0]).name,
                  large ? "its expression is long," : shortcut ? "a shortcut beside a product," : fmt::format("read in {} places,", paths), cost));
  for (ValueId r : node.results) context_.in_memory[r.value] = true;
}

}  // namespace tenon::codegen
