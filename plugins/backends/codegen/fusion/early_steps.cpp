#include "fusion/early_steps.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "fusion/overwriting.h"

namespace tenon::codegen {
namespace {

/// The values that each step writes.
std::vector<std::vector<std::size_t>> written_by(const Plan& plan, const ir::Graph& graph) {
  std::vector<std::vector<std::size_t>> written;
  for (const Step& step : plan.steps) written.push_back(values_of(step, graph, true));
  return written;
}

/// For each step the ones that last wrote what it touches. `written`: the values that each writes.
std::vector<std::vector<std::size_t>> makers(const Plan& plan, const ir::Graph& graph, const std::vector<std::vector<std::size_t>>& written) {
  std::vector<std::vector<std::size_t>> found(plan.steps.size());
  std::vector<std::optional<std::size_t>> writer(graph.value_capacity() + plan.temporaries.size());
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    for (const auto& values : {values_of(plan.steps[s], graph, false), written[s]})
      for (std::size_t v : values)
        if (writer[v]) found[s].push_back(*writer[v]);
    for (std::size_t v : written[s]) writer[v] = s;
  }
  return found;
}

}  // namespace

void stop_early(Plan& plan, const ir::Graph& graph) {
  if (std::ranges::none_of(plan.steps, may_stop)) return;
  const auto written = written_by(plan, graph);
  std::vector<int> times_written(graph.value_capacity() + plan.temporaries.size(), 0);
  for (const auto& values : written)
    for (std::size_t v : values) ++times_written[v];
  const auto before = makers(plan, graph, written);
  const auto is_number = [&](std::size_t v) { return v < graph.value_capacity() && times_written[v] == 1 && graph.type(ValueId(v)).element_count() == Dim(1); };
  std::vector<bool> gives_numbers(plan.steps.size()), early(plan.steps.size(), false);
  for (std::size_t s = 0; s < plan.steps.size(); ++s)
    gives_numbers[s] = std::ranges::all_of(written[s], is_number) && std::ranges::all_of(before[s], [&](std::size_t b) { return gives_numbers[b]; });
  for (std::size_t s = plan.steps.size(); s-- > 0;) {
    if (!gives_numbers[s] || !(early[s] || may_stop(plan.steps[s]))) continue;
    early[s] = true;
    for (std::size_t b : before[s]) early[b] = true;
  }
  std::vector<Step> steps;
  for (const bool now : {true, false})
    for (std::size_t s = 0; s < plan.steps.size(); ++s)
      if (early[s] == now) steps.push_back(std::move(plan.steps[s]));
  plan.steps = std::move(steps);
}

void update_early(Plan& plan, const ir::Graph& graph) {
  const auto written = written_by(plan, graph);
  const auto before = makers(plan, graph, written);
  std::vector<bool> given(graph.value_capacity() + plan.temporaries.size(), false);
  for (const ir::Output& output : graph.outputs()) given[output.value.value] = true;
  const auto is_given = [&](std::size_t v) { return given[v]; };
  std::vector<std::size_t> read_until(given.size(), 0);  // by value, the first place behind the steps that have read it
  std::vector<std::size_t> places(plan.steps.size());     // a step's own, doubled; or behind another one
  std::size_t stopped_until = 0;
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    places[s] = 2 * s + 1;
    const auto over = std::holds_alternative<ContractionStep>(step) && std::ranges::all_of(written[s], is_given) ? overwritings(step) : std::vector<Overwriting>();
    if (!over.empty()) {
      std::size_t first = stopped_until;
      for (std::size_t b : before[s]) first = std::max(first, b + 1);
      for (const Overwriting& o : over) first = std::max(first, read_until[o.read.value]);
      places[s] = 2 * first;
    }
    for (std::size_t v : values_of(step, graph, false)) read_until[v] = s + 1;
    if (may_stop(step)) stopped_until = s + 1;
  }
  std::vector<std::size_t> order(plan.steps.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t s) { return places[s]; });
  std::vector<Step> steps;
  for (std::size_t s : order) steps.push_back(std::move(plan.steps[s]));
  plan.steps = std::move(steps);
}

}  // namespace tenon::codegen
