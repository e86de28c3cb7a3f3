#include "host/runtime/plan_run.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/ops/infer.h"
#include "host/devices/tensor_copy.h"
#include "host/diagnostics/failure.h"
#include "host/diagnostics/profiling.h"
#include "host/machine/strided_copy.h"
#include "host/plugins/contact/given_tensor.h"
#include "host/runtime/checked_run.h"

namespace tenon::host {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

void PlanRun::steps() {
  if (context_.devices) [[unlikely]] return steps_on_devices();
  const std::size_t count = plan_.steps().size();
  const bool one_by_one = context_.watched || takes_ranges();
  for (std::uint32_t s = 0; s < count; ++s) {
    StepState& state = *context_.steps[s];
    if (!state.plain || one_by_one) [[unlikely]] {
      step(s);
      continue;
    }
    state.args.stream = args_.stream;
    if (const std::int32_t code = plan_.steps()[s]->artefact->execute(state.args); code != TENON_OK || !state.call_state.defect.empty()) [[unlikely]]
      after_failure(s, code);
    StepCounts::add(state.counts.runs, 1);
  }
}

void PlanRun::steps_on_devices() {
  std::uint32_t s = 0;
  try {
    for (; s < plan_.steps().size(); ++s) step_on_devices(s);
    context_.devices->wait_for_all();
  } catch (const Failure& why) {
    if (why.code() == Code::device_lost) lose_device(s, why);
    throw;
  }
}

void PlanRun::step_on_devices(std::uint32_t s) {
  const Step& step = *plan_.steps()[s];
  if (step.over_inputs) context_.ask_for_all_outputs(), context_.devices->wait_for_all();
  else if (!step.waits.empty()) context_.devices->wait_for(step.waits);
  context_.ask_for_outputs(step);
  if (context_.loose) context_.loose->before(s);
  this->step(s);
  if (context_.loose) context_.loose->after(s);
}

// A device tells late what went wrong on it: what it was given last is where to look.
void PlanRun::lose_device(std::uint32_t s, const Failure& why) const {
  const auto is_work = [&](std::uint32_t i) { return plan_.steps()[i]->kind == Step::Kind::group && plan_.steps()[i]->device != 0; };
  std::uint32_t last = std::min(s + 1, static_cast<std::uint32_t>(plan_.steps().size()));
  while (last > 0 && !is_work(last - 1)) --last;
  if (last == 0) return;
  const std::string text = fmt::format("{}; the last work that it was given: {}", why.what(), words_of_work(last - 1));
  plan_.devices()[plan_.steps()[last - 1]->device]->lose(text);
  throw Failure(why.code(), why.phase(), why.plugin(), text);
}

/// "softmax and add of net.py:12, from f32[64, 32]".
std::string PlanRun::words_of_work(std::uint32_t s) const {
  constexpr std::size_t kMost = 6;
  const Step& step = *plan_.steps()[s];
  std::vector<std::string> ops, places, inputs;
  const auto note = [](std::vector<std::string>& among, std::string word) {
    if (among.size() < kMost && std::ranges::find(among, word) == among.end()) among.push_back(std::move(word));
  };
  const ir::Graph graph = plan_.graph_of(step);
  for (const NodeId n : graph.nodes()) {
    const ir::Node& node = graph.node(n);
    if (node.op != "constant") note(ops, node.op.text());
    if (node.location->line) note(places, fmt::format("{}:{}", node.location->file, node.location->line));
  }
  for (std::size_t i = 0; i < step.inputs.size() && i < kMost; ++i) {
    const PlanValue& value = plan_.values()[step.inputs[i]];
    if (value.place != Place::literal && !value.late) inputs.push_back(fmt::format("{}[{}]", name_of(value.dtype), fmt::join(context_.sizes_of(value), ", ")));
  }
  return fmt::format("{}{}{}, from {}", fmt::join(ops, ", "), places.empty() ? "" : " of ", fmt::join(places, ", "), fmt::join(inputs, ", "));
}

void PlanRun::step(std::uint32_t s) {
  const Step& step = *plan_.steps()[s];
  StepCounts& counts = context_.steps[s]->counts;
  ProfiledRange range;
  if (takes_ranges()) [[unlikely]] range.begin(words_of(step));
  const bool timed = context_.timed && step.device == 0;  // a device has not run yet what it was given
  const auto start = timed ? Clock::now() : Clock::time_point();
  if (step.late) context_.prepare_late(s);
  if (step.kind == Step::Kind::copy)
    copy(s);
  else if (step.kind == Step::Kind::branch)
    branch(s);
  else
    group(s);
  if (step.late) complete(s);
  StepCounts::add(counts.runs, 1);
  if (!timed) return;
  StepCounts::add(counts.timed_runs, 1);
  StepCounts::add(counts.nanoseconds, std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
}

/// "llvm: 12 nodes".
std::string PlanRun::words_of(const Step& step) const {
  if (step.kind == Step::Kind::copy) return "copy";
  if (step.kind == Step::Kind::branch) return "branch";
  return fmt::format("{}: {} node{}", plan_.environment().backends[step.backend]->name(), step.node_count, step.node_count == 1 ? "" : "s");
}

void PlanRun::complete(std::uint32_t s) {
  const Step& step = *plan_.steps()[s];
  StepState& state = *context_.steps[s];
  std::string defect = context_.complete_late(s);
  if (!defect.empty() && step.kind == Step::Kind::group && !state.route) {
    state.call_state.defect = std::move(defect);
    after_failure(s, TENON_OK);
    defect = context_.complete_late(s);
  }
  if (!defect.empty()) throw Failure(Code::plugin_failed, TENON_PHASE_EXECUTE, plan_.environment().backends[step.backend]->name(), defect);
}

void PlanRun::copy(std::uint32_t s) {
  const Step& step = *plan_.steps()[s];
  const StepState& state = *context_.steps[s];
  const PlanValue& to = plan_.values()[step.outputs[0]];
  const PlanValue& from = plan_.values()[step.inputs[0]];
  auto* target = static_cast<std::byte*>(context_.table[step.first_output]);
  auto* source = static_cast<std::byte*>(context_.table[step.first_input]);
  if (!context_.devices) return strided_copy(target, state.to_strides, source, state.from_strides, state.sizes, size_of(to.dtype));
  RunDevices& devices = *context_.devices;
  const PlacedTensor placed{devices.device(to.device), target, state.to_strides, devices.stream(to.device)};
  copy_tensor(placed, {devices.device(from.device), source, state.from_strides, devices.stream(from.device)}, state.sizes, size_of(to.dtype));
  if (to.device != 0 || from.device == 0) return;
  devices.note_arrival(step.outputs[0], from.device);
  // Nobody reads it: its memory is another's from the next step on.
  if (to.last_step == s && to.place != Place::output) devices.wait_for(step.outputs);
}

void PlanRun::branch(std::uint32_t s) {
  const Step& step = *plan_.steps()[s];
  const StepState& state = *context_.steps[s];
  void* const* inputs = context_.table.data() + step.first_input;
  TenonRunArgs args{};
  args.struct_size = sizeof args;
  args.inputs = inputs + 1;
  args.outputs = state.args.outputs;
  args.symbols = state.symbols.data();
  args.stream = args_.stream;
  step.branches[*static_cast<const bool*>(*inputs) ? 0 : 1]->run(args);
}

void PlanRun::group(std::uint32_t s) {
  StepState& state = *context_.steps[s];
  if (!state.route) {
    if (auto detour = plan_.steps()[s]->detour()) leave_artefact(s), state.route = std::move(detour);
  }
  if (state.route) return along_route(s, *state.route);
  const Step& step = *plan_.steps()[s];
  state.args.stream = stream_of(step);
  const Artefact& artefact = *step.artefact;
  const bool checked = plan_.environment().check && artefact.backend().can_be_checked() && step.device == 0;
  const std::int32_t code = checked ? run_checked(context_, s, state.call_state.defect) : artefact.execute(state.args);
  if (step.gives && code == TENON_OK && state.call_state.defect.empty() && context_.loose) state.call_state.defect = context_.loose->missing(s);
  if (code != TENON_OK || !state.call_state.defect.empty()) after_failure(s, code);
}

void PlanRun::leave_artefact(std::uint32_t s) {
  if (!std::exchange(context_.steps[s]->plain, false)) return;
  context_.stage_updates_of(s);
  if (context_.loose) context_.loose->leave_artefact(s);
}

void PlanRun::along_route(std::uint32_t s, Plan& route) {
  StepState& state = *context_.steps[s];
  TenonRunArgs args{};
  args.struct_size = sizeof args;
  args.inputs = state.args.inputs;
  args.outputs = state.args.outputs;
  args.symbols = state.symbols.data();
  args.stream = stream_of(*plan_.steps()[s]);
  args.allocate_output = state.call.allocate_output;
  args.context = state.call.self;
  state.call_state.defect.clear();
  route.run(args);
}

// The backend's nodes go to the next one. If that succeeds the backend was to blame, and is not asked again; if it fails too, its
// words count: what fails in the reference fails by the definition of an op.
void PlanRun::after_failure(std::uint32_t s, std::int32_t code) {
  Step& step = *plan_.steps()[s];
  StepState& state = *context_.steps[s];
  Environment& environment = plan_.environment();
  const std::string& name = environment.backends[step.backend]->name();
  Error why = code == TENON_OK ? Error{Code::plugin_failed, state.call_state.defect} : plugin_error(code, "execute");
  if (code != TENON_OK && !state.call_state.defect.empty()) why.message += " (" + state.call_state.defect + ")";
  state.call_state.defect.clear();
  if (why.code == Code::device_lost) throw Failure(why.code, TENON_PHASE_EXECUTE, name, why.message);
  const bool over_updates = std::ranges::any_of(plan_.updates_, [&](const Plan::Update& u) { return u.in_place_by == s && args_.outputs[u.output] == args_.inputs[u.target]; });
  const bool over_inputs = over_updates || (context_.loose && context_.loose->is_over_inputs(s));
  // For want of memory a step may end after it has written over inputs, which nobody can read again.
  if (step.backend + 1 == environment.backends.size() || (why.code == Code::out_of_memory && over_inputs && state.plain)) throw Failure(why.code, TENON_PHASE_EXECUTE, name, why.message);

  const std::string text = fmt::format("backend '{}' failed to run {} node{}: {}", name, step.node_count, step.node_count == 1 ? "" : "s", why.message);
  leave_artefact(s);
  std::shared_ptr<Plan> next = step.detour();
  try {
    if (!next) next = Plan::compile(plan_.environment_, plan_.graph_of(step), step.backend + 1, state.symbols);
  } catch (const Exception& nobody) {
    if (nobody.code() != Code::unsupported) throw;
    throw Failure(why.code, TENON_PHASE_EXECUTE, name, fmt::format("{}; {}", text, nobody.what()));
  }
  for (std::size_t i = 0; i < step.outputs.size(); ++i)
    if (step.late && plan_.values()[step.outputs[i]].late && plan_.values()[step.outputs[i]].place != Place::output) context_.late_values[step.outputs[i]] = {};
  if (step.late) context_.prepare_late(s);
  along_route(s, *next);
  environment.events->emit({{"kind", "execute_failed"}, {"phase", "execute"}, {"backend", name}, {"nodes", step.node_count}, {"code", code_name(why.code)}, {"text", text}});
  environment.events->warn_once("fallbacks", text);
  step.set_detour(next);
  state.route = std::move(next);
}

std::shared_ptr<Plan> Step::detour() const {
  if (!has_detour()) return nullptr;
  std::lock_guard lock(mutex_);
  return detour_;
}

void Step::set_detour(std::shared_ptr<Plan> plan) {
  std::lock_guard lock(mutex_);
  if (detour_) return;
  detour_ = std::move(plan);
  has_detour_.store(true, std::memory_order_release);
}

namespace {

/// What needs a run with a context: such a run judges it. `self`: a bool, set when it is asked for.
constexpr auto kNoMemory = [](void* self, std::uint32_t, const std::int64_t*, std::size_t) noexcept -> void* {
  *static_cast<bool*>(self) = true;
  return nullptr;
};
constexpr auto kNoTensor = [](void* self, std::uint32_t, DLManagedTensorVersioned* tensor) noexcept -> std::int32_t {
  *static_cast<bool*>(self) = true;
  give_back(tensor, nullptr);  // the call that hands it over is watched
  return TENON_INVALID_ARGUMENT;
};

}  // namespace

/// Runs the only step on the caller's own pointers.
std::int32_t Plan::run_direct(const TenonRunArgs& args, bool& misused) {
  const TenonCall call{sizeof call, &misused, kNoMemory, kNoTensor};
  const std::int32_t code = steps_[0]->artefact->execute({sizeof(TenonExecuteArgs), args.inputs, args.outputs, nullptr, nullptr, args.stream, &call});
  direct_runs_.fetch_add(1, std::memory_order_relaxed);
  return code;
}

void Plan::run(const TenonRunArgs& args) {
  const bool direct = direct_.load(std::memory_order_acquire) && !steps_[0]->has_detour();
  bool misused = false;
  const std::int32_t code = direct ? run_direct(args, misused) : TENON_OK;
  if (direct && code == TENON_OK && !misused) [[likely]] return;
  RunContext* context = acquire();
  struct Lease {
    Plan& plan;
    RunContext* context;
    ~Lease() {
      context->finish();
      plan.release(context);
    }
  } lease{*this, context};
  context->fit(args.symbols);
  context->begin(args);
  PlanRun run(*this, *context, args);
  if (misused) calls_host_.store(true, std::memory_order_relaxed), direct_.store(false, std::memory_order_relaxed);
  if (direct && !misused) run.after_failure(0, code);
  else run.steps();
  context->commit_updates();
  if (context->was_idle() && !calls_host_.load(std::memory_order_relaxed)) direct_.store(true, std::memory_order_release);
}

void Plan::require_sizes(const std::int64_t* symbols) const {
  for (SymbolId s : given_symbols_) {
    const ir::SymbolInfo& symbol = symbols_[s.value];
    if (const std::int64_t value = symbols[s.value]; value < symbol.min || value > symbol.max)
      throw Exception(Code::invalid_argument, fmt::format("the graph holds for {} from {} to {}, not for {}", symbol.name, symbol.min, symbol.max, value));
  }
  for (const ir::Dim& dim : not_negative_)
    if (const std::int64_t value = dim.evaluate({symbols, symbols_.size()}); value < 0)
      throw Exception(Code::invalid_argument, fmt::format("the graph does not hold for these sizes: {} is {}, and must not be negative", ops::infer::text(graph_.copy(), dim), value));
}

RunContext* Plan::acquire() {
  if (RunContext* spare = spare_.exchange(nullptr, std::memory_order_acquire)) return spare;
  std::lock_guard lock(mutex_);
  if (!free_.empty()) {
    RunContext* context = free_.back();
    free_.pop_back();
    return context;
  }
  contexts_.push_back(std::make_unique<RunContext>(*this));
  return contexts_.back().get();
}

void Plan::release(RunContext* context) {
  if (direct_.load(std::memory_order_acquire) && !steps_[0]->has_detour()) return drop(context);  // later runs need none
  RunContext* expected = nullptr;
  if (spare_.compare_exchange_strong(expected, context, std::memory_order_release, std::memory_order_relaxed)) return;
  std::lock_guard lock(mutex_);
  free_.push_back(context);
}

}  // namespace tenon::host
