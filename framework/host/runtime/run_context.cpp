#include "host/runtime/run_context.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/memory/row_major.h"
#include "host/diagnostics/failure.h"
#include "host/machine/strided_copy.h"
#include "host/plugins/contact/given_tensor.h"
#include "host/runtime/tensor_call.h"

namespace tenon::host {
namespace {

constexpr std::size_t kTimedFrom = std::size_t{256} << 10;  // bytes touched by a plan from which reading the clock does not matter
constexpr std::size_t kLooseFrom = std::size_t{256} << 10;  // bytes of a value of a device from which memory of its own does not matter
constexpr std::size_t kLentFrom = std::size_t{1} << 20;     // bytes of an arena from which taking it does not matter

std::vector<std::int64_t> evaluated(const SizeExpressions& sizes, std::span<const std::int64_t> symbols) {
  std::vector<std::int64_t> values;
  values.reserve(sizes.size());
  for (const SizeExpression& size : sizes) values.push_back(size.evaluate(symbols));
  return values;
}

/// A literal's bits, in the type that literals have (bool, int64, float64).
std::uint64_t literal_bits(const ir::Literal& literal, std::span<const std::int64_t> symbols) {
  if (const auto* flag = std::get_if<bool>(&literal)) return *flag ? 1 : 0;
  if (const auto* dim = std::get_if<ir::Dim>(&literal)) return static_cast<std::uint64_t>(dim->evaluate(symbols));
  std::uint64_t bits;
  std::memcpy(&bits, &std::get<double>(literal), sizeof bits);
  return bits;
}

}  // namespace

RunContext::RunContext(Plan& of)
    : plan(of), symbols(of.symbols_.size(), -1), table(of.table_size_, nullptr), late_values(of.values_.size()),
      workspace_bytes_(of.steps_.size(), 0), literals_(of.values_.size(), 0) {
  for (std::uint32_t s = 0; s < plan.steps_.size(); ++s) {
    const Step& step = *plan.steps_[s];
    auto state = std::make_unique<StepState>();
    state->symbols.resize(step.group.symbols.size(), -1);
    state->call_state = {this, s, {}};
    state->call = tensor_call(state->call_state);
    state->args = {sizeof(TenonExecuteArgs), table.data() + step.first_input, table.data() + step.first_output, state->symbols.data(), nullptr, nullptr, &state->call};
    steps.push_back(std::move(state));
  }
  if (plan.devices_.size() > 1) devices = std::make_unique<RunDevices>(plan.devices_);
}

RunContext::~RunContext() { finish(); }

void RunContext::fit(const std::int64_t* given) {
  if (fitted_ && (symbols.empty() || (plan.late_symbols_.empty() && std::memcmp(symbols.data(), given, symbols.size() * sizeof *given) == 0))) return;
  bool same = fitted_;
  std::vector<bool> late(symbols.size(), false);
  for (SymbolId s : plan.late_symbols_) late[s.value] = true;
  for (std::size_t s = 0; s < symbols.size(); ++s) {
    const std::int64_t value = late[s] ? -1 : given[s];
    same = same && (late[s] || symbols[s] == value);
    symbols[s] = value;
  }
  if (same) return;
  fitted_ = false;
  lay_out();
  fitted_ = true;
}

std::vector<std::int64_t> RunContext::sizes_of(const PlanValue& value) const { return evaluated(value.sizes, symbols); }

std::vector<std::int64_t> RunContext::strides_of(const PlanValue& value, const std::vector<std::int64_t>& sizes) const {
  if (value.strides) return evaluated(*value.strides, symbols);
  return row_major_strides(sizes);
}

std::size_t RunContext::bytes_of(const PlanValue& value) const {
  const std::vector<std::int64_t> sizes = sizes_of(value);
  return extent_bytes(sizes, strides_of(value, sizes), size_of(value.dtype));
}

void RunContext::lay_out() {
  plan.require_sizes(symbols.data());
  for (std::uint32_t s = 0; s < steps.size(); ++s)
    if (!plan.steps_[s]->late) fit_step(s);
  if (std::ranges::any_of(plan.steps_, [](const auto& step) { return step->gives; })) loose = std::make_unique<LooseMemory>(*this);
  std::vector<ArenaContent> arenas(plan.devices_.size());
  std::size_t touched = 0;
  for (std::uint32_t v = 0; v < plan.values_.size(); ++v) {
    const PlanValue& value = plan.values_[v];
    if (value.late || value.place == Place::nowhere) continue;
    const std::size_t bytes = bytes_of(value);
    touched += bytes;
    if (value.place != Place::arena) continue;
    if (is_loose(value.device, bytes) || (bytes > 0 && value.device != 0 && plan.steps_[value.first_step]->gives)) {
      loose->add_value(v, bytes);
      continue;
    }
    arenas[value.device].requests.push_back({bytes, value.first_step, value.last_step});
    arenas[value.device].owners.push_back(v);
  }
  for (std::uint32_t s = 0; s < steps.size(); ++s) {
    if (workspace_bytes_[s] == 0) continue;
    if (!plan.steps_[s]->late && is_loose(plan.steps_[s]->device, workspace_bytes_[s])) {
      loose->add_workspace(s, workspace_bytes_[s]);
      continue;
    }
    ArenaContent& arena = arenas[plan.steps_[s]->device];
    arena.requests.push_back({workspace_bytes_[s], s, s});
    arena.owners.push_back(static_cast<std::uint32_t>(plan.values_.size()) + s);
  }
  timed = plan.environment_->profile || touched >= kTimedFrom;
  watched = timed || plan.environment_->check;
  arena_sizes = {};
  if (loose) arrange_loose();
  place_values(arenas[0]);
  for (std::uint32_t d = 1; d < arenas.size(); ++d) place_on_device(d, arenas[d]);
  place_literals();
}

/// Small ones lie in the arena, whoever brings the others: taking memory for each costs more than they do.
bool RunContext::is_loose(std::uint32_t device, std::size_t bytes) const { return loose && device != 0 && bytes >= kLooseFrom; }

void RunContext::arrange_loose() {
  loose->arrange();
  const std::size_t most = arena_lower_bound(loose->requests());
  arena_sizes.planned += most;
  arena_sizes.lower_bound += most;
  for (const ArenaRequest& request : loose->requests()) arena_sizes.unshared += request.bytes;
}

std::vector<std::size_t> RunContext::offsets_in_arena(const ArenaContent& content, std::size_t& bytes) {
  ArenaPlan arena = plan_arena(content.requests);
  bytes = arena.bytes;
  arena_sizes.planned += arena.bytes;
  arena_sizes.lower_bound += arena_lower_bound(content.requests);
  for (const ArenaRequest& request : content.requests) arena_sizes.unshared += request.bytes;
  return std::move(arena.offsets);
}

void RunContext::place_values(const ArenaContent& content) {
  std::size_t bytes = 0;
  const std::vector<std::size_t> offsets = offsets_in_arena(content, bytes);
  lent_bytes_ = bytes >= kLentFrom && !devices ? bytes : 0;  // a device may still read the host's when a run has ended
  arena_pointers_.clear();
  placed_at_ = nullptr;
  if (lent_bytes_ > 0) arena_ = PoolBlock();
  else if (bytes > arena_.size()) arena_ = PoolBlock(bytes);
  std::vector<const void*> pointers(plan.values_.size(), nullptr);
  std::vector<std::optional<std::size_t>> offset_of(plan.values_.size());
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    if (content.owners[i] < pointers.size()) offset_of[content.owners[i]] = offsets[i];
    else place_in_arena(&steps[content.owners[i] - pointers.size()]->args.workspace, offsets[i]);
  }
  for (std::uint32_t v = 0; v < plan.values_.size(); ++v) {
    if (plan.values_[v].place == Place::constant) pointers[v] = plan.values_[v].pointer;
    if (plan.values_[v].place == Place::literal) pointers[v] = &literals_[v];
  }
  const auto place = [&](std::uint32_t v, std::size_t slot) {
    if (offset_of[v]) place_in_arena(&table[slot], *offset_of[v]);
    else table[slot] = const_cast<void*>(pointers[v]);
  };
  for (const auto& step : plan.steps_) {
    for (std::size_t i = 0; i < step->inputs.size(); ++i) place(step->inputs[i], step->first_input + i);
    for (std::size_t i = 0; i < step->outputs.size(); ++i) place(step->outputs[i], step->first_output + i);
  }
}

void RunContext::place_in_arena(void** pointer, std::size_t offset) {
  if (lent_bytes_ > 0) arena_pointers_.push_back({pointer, offset});
  else *pointer = arena_.data() + offset;
}

void RunContext::take_arena() {
  arena_ = PoolBlock::for_a_while(lent_bytes_);
  if (std::exchange(placed_at_, arena_.data()) == arena_.data()) return;
  for (const RunDevices::ArenaPointer& p : arena_pointers_) *p.pointer = arena_.data() + p.offset;
}

void RunContext::place_on_device(std::uint32_t device, const ArenaContent& content) {
  std::size_t bytes = 0;
  const std::vector<std::size_t> offsets = offsets_in_arena(content, bytes);
  std::vector<std::optional<std::size_t>> offset_of(plan.values_.size());
  std::vector<RunDevices::ArenaPointer> pointers;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    if (content.owners[i] < offset_of.size())
      offset_of[content.owners[i]] = offsets[i];
    else
      pointers.push_back({&steps[content.owners[i] - offset_of.size()]->args.workspace, offsets[i]});
  }
  const auto place = [&](std::uint32_t v, std::size_t slot) {
    if (offset_of[v]) pointers.push_back({&table[slot], *offset_of[v]});
  };
  for (const auto& step : plan.steps_) {
    for (std::size_t i = 0; i < step->inputs.size(); ++i) place(step->inputs[i], step->first_input + i);
    for (std::size_t i = 0; i < step->outputs.size(); ++i) place(step->outputs[i], step->first_output + i);
  }
  devices->plan_arena(device, bytes, std::move(pointers));
}

void RunContext::place_literals() {
  for (std::uint32_t v = 0; v < plan.values_.size(); ++v)
    if (plan.values_[v].place == Place::literal && !plan.values_[v].late) literals_[v] = literal_bits(plan.values_[v].literal, symbols);
}

void RunContext::fit_step(std::uint32_t s) {
  const Step& step = *plan.steps_[s];
  StepState& state = *steps[s];
  if (step.kind == Step::Kind::copy) {
    const PlanValue& to = plan.values_[step.outputs[0]];
    const PlanValue& from = plan.values_[step.inputs[0]];
    if (from.place == Place::literal) literals_[step.inputs[0]] = literal_bits(from.literal, symbols);
    state.sizes = sizes_of(to);
    state.to_strides = strides_of(to, state.sizes);
    state.from_strides = strides_of(from, state.sizes);
    return;
  }
  for (std::size_t i = 0; i < state.symbols.size(); ++i) state.symbols[i] = symbols[step.group.symbols[i].value];
  if (step.kind == Step::Kind::branch) return;
  choose_route(s);
  workspace_bytes_[s] = 0;
  if (!state.route) ask_for_workspace(s);
  if (workspace_bytes_[s] == 0) state.args.workspace = nullptr;
}

void RunContext::ask_for_workspace(std::uint32_t s) {
  Step& step = *plan.steps_[s];
  StepState& state = *steps[s];
  const Result<std::size_t> bytes = step.artefact->workspace_bytes(state.symbols.data(), plan.devices_[step.device]->memory_bytes());
  if (bytes) {
    workspace_bytes_[s] = *bytes;
    return;
  }
  const auto& backends = plan.environment_->backends;
  const std::string& name = backends[step.backend]->name();
  const std::string text = fmt::format("backend '{}' cannot say how much workspace it needs for {} node{}: {}", name, step.node_count, step.node_count == 1 ? "" : "s", bytes.error().message);
  if (step.backend + 1 == backends.size()) throw Failure(bytes.error().code, TENON_PHASE_EXECUTE, name, text);
  Events& events = *plan.environment_->events;
  events.emit({{"kind", "workspace_failed"}, {"phase", "workspace"}, {"backend", name}, {"nodes", step.node_count}, {"code", code_name(bytes.error().code)}, {"text", text}});
  events.warn_once("fallbacks", fmt::format("{}; '{}' runs them", text, backends[step.backend + 1]->name()));
  step.set_detour(Plan::compile(plan.environment_, plan.graph_of(step), step.backend + 1, state.symbols));
  state.route = step.detour();
  state.plain = false;
}

void RunContext::choose_route(std::uint32_t s) {
  Step& step = *plan.steps_[s];
  StepState& state = *steps[s];
  state.route = step.detour();
  state.plain = !state.route && step.artefact && !step.late && holds(step.artefact->assumptions(), state.symbols.data());
  if (state.plain || state.route) return;
  if (step.artefact && holds(step.artefact->assumptions(), state.symbols.data())) return;

  const BackendInstance& backend = *plan.environment_->backends[step.backend];
  const PlansBySize::Found found = step.plans_by_size.find_or_make(state.symbols, plan.environment_->artefact_limit, [&] {
    return Plan::compile(plan.environment_, with_sizes(*step.group.graph, state.symbols), step.backend, state.symbols);
  });
  state.route = found.plan;
  Events& events = *plan.environment_->events;
  if (!found.made) return events.count("compiles_by_size_reused");
  const char* why = step.artefact ? "what it assumed does not hold for them" : "it takes no symbolic sizes";
  events.emit({{"kind", "compile_by_size"}, {"phase", "compile"}, {"backend", backend.name()}, {"nodes", step.node_count}, {"sizes", state.symbols}, {"dropped", found.dropped},
               {"text", fmt::format("backend '{}' compiled {} nodes for the sizes of this call, since {}", backend.name(), step.node_count, why)}});
}

void RunContext::begin(const TenonRunArgs& args) {
  call = &args;
  if (lent_bytes_ > 0) take_arena();
  if (devices) devices->begin(args.stream);
  for (const Patch& p : plan.input_patches_) table[p.slot] = const_cast<void*>(args.inputs[p.index]);
  for (const Patch& p : plan.output_patches_) table[p.slot] = args.outputs[p.index];
  if (!plan.updates_.empty()) stage_updates();
}

bool RunContext::was_idle() const { return plan.passes_through_ && symbols.empty() && !watched && steps[0]->plain && !steps[0]->args.workspace; }

// An update may be given the memory of its own target. It is written there by the last step that can fail, or computed beside it and
// copied when nothing can fail any more.
void RunContext::stage_updates() {
  for (const Plan::Update& update : plan.updates_) {
    void* target = call->outputs[update.output];
    const bool in_place = update.in_place_by && steps[*update.in_place_by]->plain;
    if (target && !in_place && target == call->inputs[update.target]) stage(update.output, target);
  }
}

void RunContext::stage(std::uint32_t position, void* target) {
  const PlanValue& value = plan.values_[plan.output_values_[position]];
  const std::size_t bytes = bytes_of(value);
  void* memory = take_memory(bytes, value.device);
  point_output(position, memory);
  staged_.push_back({memory, target, bytes, position});
}

void RunContext::point_output(std::uint32_t position, void* memory) {
  for (const Patch& p : plan.output_patches_)
    if (p.index == position) table[p.slot] = memory;
}

void RunContext::stage_updates_of(std::uint32_t step) {
  for (const Plan::Update& update : plan.updates_) {
    void* target = call->outputs[update.output];
    if (update.in_place_by == step && target && target == call->inputs[update.target]) stage(update.output, target);
  }
}

void RunContext::commit_updates() {
  if (devices) return commit_on_devices();
  for (const Staged& staged : staged_) std::memcpy(staged.target, staged.memory, staged.bytes);
}

// Nothing of the host's memory may be missing; those of devices are written in the order of their streams. The host's come last: they cannot fail.
void RunContext::commit_on_devices() {
  devices->wait_for_all();
  std::string written;
  for (const bool of_host : {false, true})
    for (const Staged& staged : staged_) {
      const PlanValue& value = plan.values_[plan.output_values_[staged.position]];
      if ((value.device == 0) != of_host) continue;
      try {
        Device& device = devices->device(value.device);
        device.copy(staged.target, device.id(), staged.memory, device.id(), staged.bytes, devices->stream(value.device));
      } catch (const Failure& why) {
        if (written.empty()) throw;
        throw Failure(why.code(), why.phase(), why.plugin(), fmt::format("{}; already written: {}", why.what(), written));
      }
      written += (written.empty() ? "%" : ", %") + value.name;
    }
}

void* RunContext::take_memory(std::size_t bytes, std::uint32_t device) {
  void* memory = plan.devices_[device]->allocate(bytes, devices ? devices->stream(device) : nullptr);
  taken_.push_back({memory, bytes, device});
  return memory;
}

void RunContext::finish() {
  if (devices) devices->settle();
  for (const LateMemory& late : taken_) {
    plan.devices_[late.device]->release(late.memory, late.bytes, devices ? devices->stream(late.device) : nullptr);
    give_back(late.tensor, late.watched);
  }
  if (loose) loose->release_all();
  if (devices) devices->give_back_arenas();
  if (lent_bytes_ > 0) arena_ = PoolBlock();
  taken_.clear();
  staged_.clear();
  call = nullptr;
}

void* RunContext::memory_of_caller(const PlanValue& value, std::span<const std::int64_t> sizes, std::size_t bytes) {
  if (!call->allocate_output) throw Exception(Code::invalid_argument, fmt::format("output {} is without memory: run needs allocate_output", value.index));
  void* memory = call->allocate_output(call->context, value.index, sizes.data(), sizes.size());
  if (!memory) throw Exception(Code::out_of_memory, fmt::format("the caller gave no memory for output {} ({} bytes)", value.index, bytes));
  return memory;
}

void RunContext::ask_for_outputs(const Step& step) {
  for (std::size_t i = 0; i < step.outputs.size(); ++i) {
    const PlanValue& value = plan.values_[step.outputs[i]];
    if (value.place != Place::output || value.late || table[step.first_output + i]) continue;
    if (const std::size_t bytes = bytes_of(value)) point_output(value.index, memory_of_caller(value, sizes_of(value), bytes));
  }
}

void RunContext::ask_for_all_outputs() {
  for (const auto& step : plan.steps_) ask_for_outputs(*step);
}

void* RunContext::allocate_late(std::uint32_t v, std::vector<std::int64_t> sizes) {
  const PlanValue& value = plan.values_[v];
  LateValue& late = late_values[v];
  const std::vector<std::int64_t> strides = strides_of(value, sizes);
  const std::size_t bytes = extent_bytes(sizes, strides, size_of(value.dtype));
  if (value.place == Place::output) {
    late.pointer = memory_of_caller(value, sizes, bytes);
  } else {
    late.pointer = take_memory(bytes, value.device);
  }
  late.sizes = std::move(sizes);
  late.sized = true;
  return late.pointer;
}

void RunContext::prepare_late(std::uint32_t s) {
  const Step& step = *plan.steps_[s];
  StepState& state = *steps[s];
  for (const Step::Binding& binding : step.bindings) symbols[binding.symbol.value] = -1;  // a way to run that failed may have bound them
  for (std::size_t i = 0; i < step.inputs.size(); ++i)
    if (plan.values_[step.inputs[i]].late && plan.values_[step.inputs[i]].place != Place::literal) table[step.first_input + i] = late_values[step.inputs[i]].pointer;
  fit_step(s);
  if (workspace_bytes_[s]) state.args.workspace = take_memory(workspace_bytes_[s], step.device);
  for (std::size_t i = 0; i < step.outputs.size(); ++i) {
    const PlanValue& value = plan.values_[step.outputs[i]];
    if (!value.late) continue;
    late_values[step.outputs[i]] = {};
    bool known = true;
    for (const SizeExpression& size : value.sizes) size.dim().for_each_symbol([&](SymbolId symbol) { known = known && symbols[symbol.value] >= 0; });
    table[step.first_output + i] = known ? allocate_late(step.outputs[i], sizes_of(value)) : nullptr;
  }
}

std::string RunContext::complete_late(std::uint32_t s) {
  const Step& step = *plan.steps_[s];
  for (std::uint32_t v : step.outputs)
    if (plan.values_[v].late && !late_values[v].sized) return fmt::format("it gave no memory for %{}, whose size depends on data", plan.values_[v].name);
  for (const Step::Binding& binding : step.bindings) symbols[binding.symbol.value] = late_values[step.outputs[binding.output]].sizes[binding.dimension];
  for (std::uint32_t v : step.outputs)
    if (plan.values_[v].late && sizes_of(plan.values_[v]) != late_values[v].sizes) return fmt::format("the sizes that it gave %{} contradict each other", plan.values_[v].name);
  for (const Step::Binding& binding : step.bindings) {
    const std::int64_t size = symbols[binding.symbol.value];
    const ir::SymbolInfo& symbol = plan.symbols_[binding.symbol.value];
    if (size < symbol.min || size > symbol.max)
      throw Exception(Code::invalid_argument, fmt::format("the graph holds for a size '{}' of {} to {}, not for {}", symbol.name, symbol.min, symbol.max, size));
  }
  return {};
}

}  // namespace tenon::host
