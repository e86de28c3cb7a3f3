#include <algorithm>

#include "host/runtime/run_context.h"

namespace tenon::host {
namespace {

std::int64_t since(const std::atomic<std::int64_t>& counter, std::int64_t& collected) {
  const std::int64_t now = counter.load(std::memory_order_relaxed);
  const std::int64_t delta = now - collected;
  collected = now;
  return delta;
}

}  // namespace

Plan::Plan() = default;

Plan::~Plan() {
  if (!environment_) return;
  environment_->live_plans->remove(this);
  collect();
}

void Plan::collect() {
  std::lock_guard lock(mutex_);
  for (const auto& context : contexts_) collect(*context);
  if (passes_through_ && steps_[0]->artefact) steps_[0]->artefact->backend().counters().runs += since(direct_runs_, collected_direct_runs_);
}

void Plan::collect(RunContext& context) {
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    if (!steps_[s]->artefact) continue;
    StepCounts& counts = context.steps[s]->counts;
    BackendCounters& total = steps_[s]->artefact->backend().counters();
    total.runs += since(counts.runs, counts.collected_runs);
    total.timed_runs += since(counts.timed_runs, counts.collected_timed_runs);
    total.run_nanoseconds += since(counts.nanoseconds, counts.collected_nanoseconds);
  }
}

void Plan::drop(const RunContext* context) {
  std::lock_guard lock(mutex_);
  const auto kept = std::ranges::find_if(contexts_, [&](const auto& other) { return other.get() == context; });
  collect(**kept);
  contexts_.erase(kept);
}

Plan::ArenaSizes Plan::arena_sizes() const {
  std::lock_guard lock(mutex_);
  return contexts_.empty() ? ArenaSizes{} : contexts_.back()->arena_sizes;
}

PeakMemory Plan::peak_memory() const {
  std::lock_guard lock(mutex_);
  const bool direct = direct_.load(std::memory_order_relaxed);  // without symbols, and without an arena
  if (contexts_.empty() && !direct) return {};
  const std::vector<std::int64_t> symbols = direct ? std::vector<std::int64_t>() : contexts_.back()->symbols;
  std::size_t outputs = 0;
  for (std::uint32_t v : output_values_) {
    if (values_[v].place != Place::output) continue;
    std::size_t bytes = size_of(values_[v].dtype);
    for (const SizeExpression& size : values_[v].sizes) bytes *= static_cast<std::size_t>(std::max<std::int64_t>(size.evaluate(symbols), 0));
    outputs += bytes;
  }
  return {(direct ? 0 : contexts_.back()->arena_sizes.planned) + outputs, unfused_peak(graph_.copy(), symbols)};
}

PeakMemory LivePlans::peak_memory() {
  std::lock_guard lock(mutex_);
  PeakMemory largest;
  for (const Plan* plan : plans_) {
    const PeakMemory peak = plan->peak_memory();
    largest = {std::max(largest.planned, peak.planned), std::max(largest.unfused, peak.unfused)};
  }
  return largest;
}

void LivePlans::add(Plan* plan) {
  std::lock_guard lock(mutex_);
  plans_.push_back(plan);
}

void LivePlans::remove(Plan* plan) {
  std::lock_guard lock(mutex_);
  std::erase(plans_, plan);
}

void LivePlans::collect() {
  std::lock_guard lock(mutex_);
  for (Plan* plan : plans_) plan->collect();
}

}  // namespace tenon::host
