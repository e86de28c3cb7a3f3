#include "places/placement.h"

#include <algorithm>
#include <variant>

#include "core/memory/arena_plan.h"
#include "core/ops/catalog.h"
#include "fusion/overwriting.h"

namespace tenon::codegen {

namespace {

/// The share of the workspace that resting may add to it.
constexpr std::size_t kMostAdded = 8;

std::size_t aligned(std::size_t bytes) { return (bytes + Placement::kAlignment - 1) & ~(Placement::kAlignment - 1); }

}  // namespace

Placement::Placement(const ir::Graph& graph, const Plan& plan, std::uint32_t rest) {
  find_unread(graph);
  places_.resize(graph.value_capacity() + plan.temporaries.size());
  for (std::size_t i = 0; i < graph.inputs().size(); ++i)
    places_[graph.inputs()[i].value] = {Place::Kind::input, static_cast<std::uint32_t>(i), nullptr};
  for (NodeId id : graph.nodes()) {
    const ir::Node& node = graph.node(id);
    if (node.op != "constant" || !node.operands.empty()) continue;
    const auto index = static_cast<std::size_t>(std::get<Dim>(*node.attribute("index")).constant());
    places_[node.results[0].value] = {Place::Kind::constant, 0, graph.constants()[index].data};
  }
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    const ValueId value = graph.outputs()[i].value;
    Place& place = places_[value.value];
    if (place.kind == Place::Kind::none && graph.value(value).kind == ir::ValueKind::result) place = {Place::Kind::output, static_cast<std::uint32_t>(i), nullptr};
    else copies_.emplace_back(value, static_cast<std::uint32_t>(i));
  }
  auto values = intermediates(graph, plan, 0);
  fixed_sizes_ = std::ranges::all_of(values, [](const Intermediate& v) { return v.bytes.is_constant(); });
  if (fixed_sizes_) place_at_offsets(std::move(values), rest > 0 ? intermediates(graph, plan, rest) : std::vector<Intermediate>(), rest);
  else for (const Intermediate& v : values) place_in_turn(v);
}

/// Kernels that are written out leave such results out.
void Placement::find_unread(const ir::Graph& graph) {
  unread_.assign(graph.value_capacity(), false);
  const auto users = graph.users();
  for (NodeId id : graph.nodes()) {
    const ir::Node& node = graph.node(id);
    const ops::Op* op = ops::find_op(node.op);
    if (!op || !op->kernel || node.results.size() < 2) continue;
    for (ValueId v : node.results)
      unread_[v.value] = users[v.value].empty() && std::ranges::none_of(graph.outputs(), [&](const ir::Output& output) { return output.value == v; });
  }
}

std::vector<std::size_t> Placement::last_uses(const ir::Graph& graph, const Plan& plan) const {
  std::vector<std::size_t> last(places_.size(), 0);
  for (std::size_t s = 0; s < plan.steps.size(); ++s)
    for (const bool written : {false, true})
      for (std::size_t v : values_of(plan.steps[s], graph, written)) last[v] = s;
  for (const auto& [value, output] : copies_) last[value.value] = plan.steps.size();
  return last;
}

std::vector<Placement::Intermediate> Placement::intermediates(const ir::Graph& graph, const Plan& plan, std::uint32_t rest) const {
  constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  const std::size_t graph_values = graph.value_capacity();
  const auto last = last_uses(graph, plan);
  std::vector<std::size_t> piece(places_.size(), kNone);  // by value
  std::vector<std::size_t> read(places_.size(), 0);       // by value: the last step before this one that reads it, the first one being 1
  std::vector<Intermediate> found;
  auto bytes_of = [&](std::size_t v) {
    const bool temporary = v >= graph_values;
    const DType dtype = temporary ? plan.temporaries[v - graph_values].dtype : graph.type(ValueId(v)).dtype;
    return (temporary ? plan.temporaries[v - graph_values].elements : graph.type(ValueId(v)).element_count()) * Dim(static_cast<std::int64_t>(size_of(dtype)));
  };
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    for (const auto& [written, from] : overwritings(plan.steps[s])) {
      const std::size_t over = piece[from.value];
      if (over == kNone || places_[written.value].kind != Place::Kind::none || piece[written.value] != kNone) continue;
      if (found[over].to != s || found[over].values.back() != from.value || !(found[over].bytes == bytes_of(written.value))) continue;
      if (read[from.value] > 0 && read[from.value] + rest > s) continue;
      piece[written.value] = over;
      found[over].values.push_back(written.value);
      found[over].to = last[written.value];
    }
    for (std::size_t v : values_of(plan.steps[s], graph, true)) {
      if (places_[v].kind != Place::Kind::none || piece[v] != kNone || (v < graph_values && unread_[v])) continue;
      piece[v] = found.size();
      found.push_back({{v}, bytes_of(v), s, last[v]});
    }
    for (const std::size_t v : values_of(plan.steps[s], graph, false)) read[v] = s + 1;
  }
  return found;
}

std::vector<TenonAliasPermit> Placement::aliases(const ir::Graph& graph, const Plan& plan, bool loses_memory) const {
  const auto last = last_uses(graph, plan);
  std::vector<std::size_t> first(places_.size(), 0);  // the step that begins a value, of which others may write parts
  for (std::size_t s = plan.steps.size(); s-- > 0;)
    for (std::size_t v : values_of(plan.steps[s], graph, true)) first[v] = s;
  std::vector<TenonAliasPermit> found;
  for (std::size_t s = plan.steps.size(); s-- > 0 && (loses_memory || !may_stop(plan.steps[s]));)
    for (const auto& [written, read] : overwritings(plan.steps[s])) {
      const Place &to = places_[written.value], &from = places_[read.value];
      if (to.kind == Place::Kind::output && from.kind == Place::Kind::input && first[written.value] == s && last[read.value] == s) found.push_back({to.index, from.index});
    }
  return found;
}

void Placement::place(const Intermediate& intermediate, std::size_t index) {
  for (std::size_t v : intermediate.values) places_[v] = {Place::Kind::workspace, static_cast<std::uint32_t>(index), nullptr};
}

/// Sizes are known: values share whatever bytes are free, after a rest where that takes little more of them.
void Placement::place_at_offsets(std::vector<Intermediate> values, std::vector<Intermediate> rested, std::uint32_t rest) {
  const auto arena_of = [](std::span<const Intermediate> placed, std::uint32_t longer) {
    std::vector<ArenaRequest> requests;
    for (const Intermediate& v : placed) requests.push_back({static_cast<std::size_t>(v.bytes.constant()), static_cast<std::uint32_t>(v.from), static_cast<std::uint32_t>(v.to) + longer});
    return plan_arena(requests);
  };
  ArenaPlan arena = arena_of(values, 0);
  if (rest > 0) {
    ArenaPlan wider = arena_of(rested, rest);
    if (wider.bytes <= arena.bytes + arena.bytes / kMostAdded) arena = std::move(wider), values = std::move(rested);
  }
  for (std::size_t i = 0; i < values.size(); ++i) place(values[i], i);
  offsets_ = std::move(arena.offsets), fixed_bytes_ = arena.bytes;
}

/// Values whose sizes come with the call take turns in slots that fit them at any size.
void Placement::place_in_turn(const Intermediate& value) {
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].free_after >= value.from + 1) continue;
    const Dim spare = slots_[i].bytes - value.bytes;
    const bool fits = spare.is_constant() && spare.constant() >= 0 && (slots_[i].bytes.is_constant() ? spare.constant() <= value.bytes.constant() : true);
    if (!fits) continue;
    slots_[i].free_after = value.to + 1;
    return place(value, i);
  }
  place(value, slots_.size());
  slots_.push_back({value.bytes, value.to + 1});
}

std::size_t Placement::workspace_bytes(std::span<const std::int64_t> symbols) const {
  if (fixed_sizes_) return fixed_bytes_;
  std::size_t bytes = 0;
  for (const Slot& slot : slots_) bytes += aligned(static_cast<std::size_t>(slot.bytes.evaluate(symbols)));
  return bytes;
}

void Placement::find_offsets(std::span<const std::int64_t> symbols, std::vector<std::size_t>& offsets) const {
  offsets.clear();
  std::size_t bytes = 0;
  for (const Slot& slot : slots_) {
    offsets.push_back(bytes);
    bytes += aligned(static_cast<std::size_t>(slot.bytes.evaluate(symbols)));
  }
}

}  // namespace tenon::codegen
