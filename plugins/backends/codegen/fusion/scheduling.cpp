// When steps run, and what is alive meanwhile: in the order of the graph, each as late as its last node and right before what needs it. Kernels
// grow as long as no more is alive at once than when the nodes run one by one.
#include <algorithm>
#include <functional>
#include <iterator>
#include <ranges>
#include <set>

#include "fusion/lifetimes.h"
#include "fusion/planner.h"

namespace tenon::codegen {

void Planner::begin_schedule() {
  const auto nodes = graph_.nodes();
  place_.assign(graph_.node_capacity(), 0);
  for (std::size_t i = 0; i < nodes.size(); ++i) place_[nodes[i].value] = i;
  begun_by_.assign(graph_.value_capacity(), kNoStep);
  is_output_memory_.assign(graph_.value_capacity(), false);
  for (const ir::Output& output : graph_.outputs()) is_output_memory_[context_.place_of(output.value).value.value] = true;
  for (NodeId id : nodes)
    for (ValueId r : graph_.node(id).results)
      if (const ValueId memory = context_.place_of(r).value; memory != r) parts_[memory].push_back(r);
  may_live_ = machine_.worth_keeping_alive(most_alive_node_by_node(graph_, algebra_));
  find_lives();
}

std::size_t Planner::last_maker_of(NodeId id) const {
  std::size_t last = 0;
  for (ValueId r : graph_.node(id).results) last = std::max(last, context_.in_memory[r.value] ? place_[id.value] : last_read_[r.value]);
  return last;
}

/// What steps write lives until the last node in memory is computed that is made of it, with what is computed in between.
void Planner::find_lives() {
  const auto nodes = graph_.nodes();
  bytes_.assign(graph_.value_capacity(), 0);
  last_read_.assign(graph_.value_capacity(), 0);
  begins_.assign(graph_.value_capacity(), 0);
  for (const ir::Output& output : graph_.outputs()) last_read_[context_.place_of(output.value).value.value] = nodes.size();
  for (std::size_t i = nodes.size(); i-- > 0;) {
    const std::size_t read = last_maker_of(nodes[i]);
    for (ValueId operand : graph_.node(nodes[i]).operands)
      for (ValueId v : {operand, context_.place_of(operand).value}) last_read_[v.value] = std::max(last_read_[v.value], read);
  }
  std::vector<double> change(nodes.size() + 1, 0);
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (ValueId r : graph_.node(nodes[i]).results) {
      const ValueId memory = context_.place_of(r).value;
      if (has_life(memory) || !begins_life(r)) continue;
      begins_[memory.value] = i;
      bytes_[memory.value] = estimated_bytes(graph_.type(memory), algebra_);
      if (last_read_[memory.value] <= i) continue;
      change[i] += bytes_[memory.value];
      change[last_read_[memory.value]] -= bytes_[memory.value];
    }
  alive_after_.assign(nodes.size(), 0);
  double alive = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) alive_after_[i] = alive += change[i];
}

bool Planner::begins_life(ValueId written) const {
  const ValueId memory = context_.place_of(written).value;
  return context_.in_memory[written.value] && graph_.value(memory).kind == ir::ValueKind::result && !context_.is_constant(memory);
}

std::size_t Planner::last_reader_of(ValueId value) const {
  std::size_t last = 0;
  const auto ask_users = [&](ValueId v) {
    for (NodeId user : users_[v.value]) last = std::max(last, last_maker_of(user));
  };
  if (is_output_memory_[value.value]) return graph_.nodes().size();
  ask_users(value);
  if (const auto parts = parts_.find(value); parts != parts_.end()) std::ranges::for_each(parts->second, ask_users);
  return last;
}

void Planner::set_life(ValueId memory, std::size_t begin, std::size_t end) {
  const auto count = [&](std::size_t from, std::size_t to, double bytes) {
    for (std::size_t i = from; i < to; ++i) alive_after_[i] += bytes;
  };
  const double bytes = bytes_[memory.value];
  const std::size_t was_begin = begins_[memory.value], was_end = std::max(was_begin, last_read_[memory.value]), now_end = std::max(begin, end);
  if (bytes > 0 && begin == was_begin) {
    count(was_end, now_end, bytes);
    count(now_end, was_end, -bytes);
  } else if (bytes > 0) {
    count(was_begin, was_end, -bytes);
    count(begin, now_end, bytes);
  }
  begins_[memory.value] = begin;
  last_read_[memory.value] = end;
}

/// The same as finding all lives again: what a node's results are made of lives until that node, unless another one reads it later.
void Planner::find_lives_with(NodeId stored) {
  const auto nodes = graph_.nodes();
  std::set<std::size_t, std::greater<>> pending{place_[stored.value]};  // places of nodes that are read by others than before
  while (!pending.empty()) {
    const NodeId id = nodes[*pending.begin()];
    pending.erase(pending.begin());
    for (ValueId operand : graph_.node(id).operands)
      for (ValueId v : {operand, context_.place_of(operand).value}) {
        if (graph_.value(v).kind != ir::ValueKind::result) continue;
        const std::size_t read = last_reader_of(v);
        if (read == last_read_[v.value]) continue;
        set_life(v, begins_[v.value], read);
        if (!context_.in_memory[v.value]) pending.insert(place_[graph_.value(v).node.value]);
      }
  }
  const std::size_t place = place_[stored.value];
  for (ValueId r : graph_.node(stored).results) {
    const ValueId memory = context_.place_of(r).value;
    if (!begins_life(r) || (has_life(memory) && begins_[memory.value] <= place)) continue;
    if (!has_life(memory)) begins_[memory.value] = last_read_[memory.value];  // counted nowhere so far
    bytes_[memory.value] = estimated_bytes(graph_.type(memory), algebra_);
    set_life(memory, place, last_read_[memory.value]);
  }
}

std::vector<ValueId> Planner::reads_of(const PendingStep& step, const Draft* draft) const {
  if (!draft) {
    const auto operands = graph_.node(std::get<LibraryStep>(step.fixed).node).operands;
    return {operands.begin(), operands.end()};
  }
  std::vector<ValueId> reads;
  std::ranges::copy_if(draft->buffers(), std::back_inserter(reads), [&](ValueId v) { return !draft->member(v); });
  reads.insert(reads.end(), step.product_reads.begin(), step.product_reads.end());
  return reads;
}

std::vector<ValueId> Planner::writes_of(const PendingStep& step, const Draft* draft) const {
  if (!draft) {
    const auto results = graph_.node(std::get<LibraryStep>(step.fixed).node).results;
    return {results.begin(), results.end()};
  }
  std::vector<ValueId> writes;
  for (const Draft::Member& member : draft->members()) writes.push_back(context_.place_of(member.value).value);
  return writes;
}

void Planner::write(ValueId value, std::size_t step) {
  step_of_[value.value] = step;
  auto& begun = begun_by_[context_.place_of(value).value.value];
  begun = std::min(begun, step);
}

/// The step with the draft in place of its own.
Planner::Change Planner::change_of(std::size_t step, const Draft* draft) const {
  Change change{step, draft, now_, steps_[step].after};
  change.after.resize(steps_.size());
  if (!draft) return change;
  for (std::size_t producer : producers_of(*draft, step)) {
    auto closure = steps_[producer].after;
    closure.resize(steps_.size());
    closure.set(producer);
    change.after |= closure;
  }
  return change;
}

/// The last steps with the change: from the first on that runs no later than another one which the graph has after it.
Planner::Reordering Planner::reordered(const Change& change) const {
  const auto last_of = [&](std::size_t s) { return s == change.step ? change.last : steps_[s].last; };
  const auto own = std::find(order_.rbegin(), order_.rend(), change.step);
  Reordering order{own == order_.rend() ? order_.size() : static_cast<std::size_t>(order_.rend() - own) - 1, {}};
  std::size_t first = change.last;
  for (std::size_t i = order.begin; i < order_.size(); ++i) first = std::min(first, last_of(order_[i]));
  for (; order.begin > 0 && furthest_[order.begin - 1] > first; --order.begin) first = std::min(first, last_of(order_[order.begin - 1]));
  std::vector<std::size_t> wanted(order_.begin() + static_cast<std::ptrdiff_t>(order.begin), order_.end());
  if (own == order_.rend()) wanted.push_back(change.step);
  std::ranges::stable_sort(wanted, {}, last_of);
  boost::dynamic_bitset<> open(steps_.size());
  for (std::size_t s : wanted) open.set(s);
  auto run = [&](auto& self, std::size_t step) -> void {
    if (!open[step]) return;
    open.reset(step);
    auto missing = step == change.step ? change.after : steps_[step].after;
    missing.resize(steps_.size());
    missing &= open;
    std::vector<std::size_t> before;
    for (auto s = missing.find_first(); s != missing.npos; s = missing.find_next(s)) before.push_back(s);
    std::ranges::stable_sort(before, {}, last_of);
    for (std::size_t s : before) self(self, s);
    order.steps.push_back(step);
  };
  for (std::size_t s : wanted) run(run, s);
  return order;
}

/// The bytes that are alive at the busiest of the steps, which compute the nodes up to a place. What is alive after them is known: what nodes
/// further on read.
double Planner::most_alive(const Reordering& order, const Change& change, std::size_t place) const {
  const auto lives_on = [&](ValueId v) { return last_read_[v.value] > place; };
  double alive = alive_after_[place], most = alive;
  boost::dynamic_bitset<> read(bytes_.size()), begun(bytes_.size());
  for (std::size_t s : order.steps | std::views::reverse) {
    const Draft* draft = s == change.step ? change.draft : steps_[s].draft.get();
    for (ValueId v : reads_of(steps_[s], draft)) {
      if (!has_life(v) || lives_on(v) || read[v.value]) continue;
      read.set(v.value);
      alive += bytes_[v.value];
    }
    double begins = 0, unread = 0;
    for (ValueId v : writes_of(steps_[s], draft)) {
      const bool here = (begun_by_[v.value] == s || begun_by_[v.value] == kNoStep) && !begun.test_set(v.value);
      if (here && (lives_on(v) || read[v.value])) begins += bytes_[v.value];
      else if (here && last_read_[v.value] == 0) unread += bytes_[v.value];  // it is there for its checks
    }
    most = std::max(most, alive + unread);
    alive -= begins;
  }
  return most;
}

/// Finds when a new step runs: right before what it was opened for, or where its node stands when more would be alive otherwise.
void Planner::schedule(std::size_t step) {
  Change change = change_of(step, steps_[step].draft.get());
  Reordering order = reordered(change);
  double alive = most_alive(order, change, now_);
  const auto nodes = change.draft ? change.draft->nodes() : std::vector<NodeId>();
  if (alive > may_live_ && !nodes.empty() && place_[nodes[0].value] < now_) {
    Change early = change;
    early.last = place_[nodes[0].value];
    Reordering other = reordered(early);
    if (const double bytes = most_alive(other, early, now_); bytes < alive) change = std::move(early), order = std::move(other), alive = bytes;
  }
  steps_[step].last = change.last;
  may_live_ = std::max(may_live_, alive);
  take(order);
}

/// True when the step could write what the node gives, too, which is not in memory yet.
bool Planner::may_live_from(std::size_t step, NodeId node) const {
  if (now_ == 0) return true;
  const auto own = std::ranges::find(order_, step);
  const Reordering from{static_cast<std::size_t>(own - order_.begin()), {own, order_.end()}};
  double bytes = most_alive(from, change_of(step, steps_[step].draft.get()), now_ - 1);
  for (NodeId id : {node, graph_.nodes()[now_]})  // the one that is placed begins while what it reads is alive
    for (ValueId v : graph_.node(id).results)
      if (id == node || begins_life(v)) bytes += estimated_bytes(graph_.type(v), algebra_);
  return bytes <= may_live_;
}

void Planner::take(const Reordering& order) {
  order_.resize(order.begin);
  furthest_.resize(order.begin);
  for (std::size_t s : order.steps) {
    order_.push_back(s);
    furthest_.push_back(std::max(furthest_.empty() ? 0 : furthest_.back(), steps_[s].last));
  }
}

}  // namespace tenon::codegen
