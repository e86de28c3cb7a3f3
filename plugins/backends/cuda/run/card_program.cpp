#include "run/card_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>

#include "device/cards.h"
#include "fusion/step_outline.h"
#include "fusion/step_times.h"
#include "run/ordering.h"

namespace tenon::cuda {

using codegen::Place;
using ir::ValueId;

namespace {

/// Of the card that computes: a group that only checks an index gives nothing.
int ordinal_of(const ir::Graph& graph) {
  for (const ir::NodeId id : graph.nodes())
    for (const ValueId result : graph.node(id).results)
      if (const ir::Device device = graph.type(result).device; device.kind == kDLCUDA) return device.index;
  TENON_CHECK(false, "a group computes nothing on a card");
}

ScheduledPlan plan_of(const ir::Graph& graph, const CardProgram::Options& options, int ordinal) {
  PlanChoices choices = choices_for(Cards::get().at(ordinal).architecture);
  choices.fuse = options.fuse, choices.has_tensor_cores = choices.has_tensor_cores && options.tensor_cores, choices.rounding = options.rounding;
  return plan_with_code(graph, choices).value();
}

ir::Graph prepared(ir::Graph graph) {
  prepare(graph);
  return graph;
}

/// Launches that are set about as fast as a graph is chosen; and graphs of more that are kept: memory that is freed by one call and taken by the next
/// takes turns.
constexpr std::size_t kFewLaunches = 24, kMostGraphs = 4;

/// Steps for which memory rests: the gradient of a layer's weight runs beside that of its input, which is computed a few steps later.
constexpr std::uint32_t kRest = 4;

bool starts_at_vector(const void* address) { return reinterpret_cast<std::uintptr_t>(address) % kVectorBytes == 0; }

std::uint64_t bits_of(const void* number, std::size_t bytes) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, number, bytes);
  return bits;
}

}  // namespace

/// What a call gives.
struct CardProgram::Call {
  const TenonExecuteArgs& args;
  std::span<const std::int64_t> symbols;
  CUstream stream;
  const std::size_t* offsets;  // of the workspace's slots

  std::uint64_t value(const Parameter& parameter) const {
    const Place& place = parameter.place;
    if (parameter.number) return bits_of(args.inputs[place.index], parameter.bytes);
    const auto from = [&](const void* memory) { return reinterpret_cast<CUdeviceptr>(memory) + static_cast<CUdeviceptr>(place.start); };
    if (place.kind == Place::Kind::input) return from(args.inputs[place.index]);
    if (place.kind == Place::Kind::output) return from(args.outputs[place.index]);
    return from(args.workspace) + offsets[place.index];
  }
};

CardProgram::CardProgram(HostServices host, ir::Graph graph, const Options& options)
    : host_(host), graph_(prepared(std::move(graph))), ordinal_(ordinal_of(graph_)), graphs_(options.graphs), plan_(plan_of(graph_, options, ordinal_)), placement_(graph_, plan_.plan, kRest), log_times_(host.log_enabled("kernel_times")) {
  for (const ValueId input : graph_.inputs()) number_bytes_.push_back(graph_.type(input).is_host_scalar() ? static_cast<std::uint8_t>(size_of(graph_.type(input).dtype)) : 0);
  find_runs();
  find_order();
  if (host_.log_enabled("steps") || log_times_) say_steps();
  code_ = std::make_unique<CardCode>(host_, ordinal_, plan_);
}

/// Before the code, whose functions they name.
void CardProgram::say_steps() {
  number_ = codegen::next_program_number();
  if (!host_.log_enabled("steps")) return;
  for (std::size_t s = 0; s < plan_.plan.steps.size(); ++s) host_.log(TENON_INFO, codegen::step_outline(graph_, plan_.plan, number_, s, function_of(plan_, s, text_of(plan_, s))), "steps");
  host_.log(TENON_INFO, codegen::memory_line(graph_, plan_.plan, number_), "steps");
}

/// Views of a tensor may start anywhere: the code for them is made when the first comes.
CardCode& CardProgram::loose_code() {
  std::call_once(loose_made_, [&] { loose_ = std::make_unique<CardCode>(host_, ordinal_, for_any_start(plan_)); });
  return *loose_;
}

void CardProgram::find_runs() {
  TENON_CHECK(placement_.copies().empty(), "an output of a group is no result of its own");
  for (std::size_t k = 0; k < plan_.schedules.size(); ++k) {
    const codegen::KernelStep& step = plan_.step(k);
    const codegen::Dim blocks = plan_.schedules[k].blocks();
    if (blocks.is_constant() && blocks.constant() <= 0) continue;
    fixed_ = fixed_ && blocks.is_constant();
    const std::size_t runs = step.others.size() + 1, at_once = plan_.schedules[k].runs;
    for (std::size_t first = 0; first < runs; first += at_once) {
      Run run{k, std::min(at_once, runs - first), {}};
      for (std::size_t i = 0; i < at_once; ++i) add_parameters(run, std::min(first + i, runs - 1));
      runs_.push_back(std::move(run));
    }
  }
}

void CardProgram::add_parameters(Run& run, std::size_t number) const {
  const codegen::KernelStep& step = plan_.step(run.kernel);
  const auto& values = number == 0 ? step.buffers : step.others[number - 1];
  for (std::size_t b = 0; b < memory_buffers(step.kernel); ++b) {
    TENON_CHECK(!codegen::is_local(values[b]) && placement_[values[b]].kind != Place::Kind::none, "a value of a group lies nowhere");
    const std::size_t element = size_of(step.kernel.buffers[b].dtype);
    Parameter& parameter = run.parameters.emplace_back(Parameter{placement_[values[b]], plan_.schedules[run.kernel].is_number(b), static_cast<std::uint8_t>(element)});
    if (!step.starts.empty()) parameter.place.start = step.starts[number * values.size() + b] * static_cast<std::int64_t>(element);
  }
}

const codegen::Buffer& CardProgram::buffer_of(const Run& run, std::size_t parameter) const {
  const codegen::Kernel& kernel = plan_.step(run.kernel).kernel;
  return kernel.buffers[parameter % memory_buffers(kernel)];
}

/// All inputs count as one memory, since a call says which of them are the same; those that an output may lie on have each a part of it: they are
/// inputs that a program updates, and nobody else's.
void CardProgram::find_order() {
  constexpr std::size_t kInputs = 0, kWorkspace = 1, kOthers = 2;
  const auto inputs = static_cast<std::int64_t>(graph_.inputs().size());
  std::map<std::uint32_t, std::vector<std::uint32_t>> updates;  // by output: the inputs that it may lie on
  std::vector<bool> is_updated(graph_.inputs().size(), false);
  for (const TenonAliasPermit& permit : aliases()) updates[permit.output].push_back(permit.input), is_updated[permit.input] = true;
  std::vector<std::int64_t> bytes;  // by slot of the workspace
  if (placement_.has_fixed_sizes()) bytes.resize(placement_.slot_count(), 0);
  for (const Run& run : runs_)
    for (std::size_t b = 0; b < run.parameters.size() && !bytes.empty(); ++b)
      if (const Place& place = run.parameters[b].place; place.kind == Place::Kind::workspace)
        bytes[place.index] = std::max(bytes[place.index], buffer_of(run, b).bytes.constant());
  std::vector<std::vector<Touch>> touched;
  const auto touch_input = [&](std::int64_t input, bool written) {
    const bool apart = is_updated[static_cast<std::size_t>(input)];
    touched.back().push_back({kInputs, apart ? input : 0, apart ? input + 1 : inputs, written});
  };
  const auto touch = [&](const Place& place, bool written) {
    if (place.kind == Place::Kind::input) return touch_input(place.index, written);
    if (place.kind == Place::Kind::output) {
      touched.back().push_back({kOthers + place.index, 0, 1, written});
      if (const auto found = updates.find(place.index); found != updates.end())
        for (const std::uint32_t input : found->second) touch_input(input, written);
      return;
    }
    if (bytes.empty()) return touched.back().push_back({kOthers + graph_.outputs().size() + place.index, 0, 1, written});
    const auto begin = static_cast<std::int64_t>(placement_.fixed_offsets()[place.index]);
    touched.back().push_back({kWorkspace, begin, begin + bytes[place.index], written});
  };
  for (const Run& run : runs_) {
    touched.emplace_back();
    for (std::size_t b = 0; b < run.parameters.size(); ++b)
      if (!run.parameters[b].number) touch(run.parameters[b].place, buffer_of(run, b).written);
  }
  after_ = order_of(touched);
}

std::vector<TenonAliasPermit> CardProgram::aliases() const {
  auto permits = placement_.aliases(graph_, plan_.plan, true);  // a kernel that stops ends the context
  std::erase_if(permits, [&](const TenonAliasPermit& permit) { return graph_.type(graph_.inputs()[permit.input]).is_host_scalar(); });
  return permits;
}

void CardProgram::execute(const TenonExecuteArgs& args) {
  if (runs_.empty()) return;
  const InContext context(ordinal_);
  std::vector<std::size_t> offsets;
  Call call{args, {args.symbols, graph_.symbols().size()}, static_cast<CUstream>(args.stream), placement_.fixed_offsets()};
  if (!placement_.has_fixed_sizes()) {
    placement_.find_offsets(call.symbols, offsets);
    call.offsets = offsets.data();
  }
  bool fits = std::all_of(args.outputs, args.outputs + graph_.outputs().size(), starts_at_vector);
  for (std::size_t i = 0; i < number_bytes_.size(); ++i) fits = fits && (number_bytes_[i] != 0 || starts_at_vector(args.inputs[i]));
  CardCode& code = fits ? *code_ : loose_code();
  int capturing = 0;  // the user makes a graph of their own: the kernels become nodes of it
  const bool alone = Driver::get().stream_capturing.code(call.stream, &capturing) == kSuccess && capturing == 0;
  if (log_times_ && alone) [[unlikely]] return launch_timed(code, call);
  if (graphs_ && alone) return launch_graph(code, call);
  for (const KernelLaunch& launch : launches(code, call))
    if (launch.blocks > 0) launch_kernel(launch, call.stream);
}

template <class Visit>
void CardProgram::for_each_given(const Call& call, const Visit& visit) const {
  for (std::size_t i = 0; i < number_bytes_.size(); ++i)
    visit(number_bytes_[i] ? bits_of(call.args.inputs[i], number_bytes_[i]) : reinterpret_cast<std::uint64_t>(call.args.inputs[i]));
  for (std::size_t k = 0; k < graph_.outputs().size(); ++k) visit(reinterpret_cast<std::uint64_t>(call.args.outputs[k]));
  visit(reinterpret_cast<std::uint64_t>(call.args.workspace));
  for (const std::int64_t symbol : call.symbols) visit(static_cast<std::uint64_t>(symbol));
}

bool CardProgram::was_given(const Call& call, std::span<const std::uint64_t> given) const {
  bool same = !given.empty();
  std::size_t i = 0;
  for_each_given(call, [&](std::uint64_t bits) { same = same && given[i++] == bits; });
  return same;
}

void CardProgram::launch_graph(CardCode& code, const Call& call) const {
  auto prepared = code.take([&](const CardCode::Prepared& one) { return was_given(call, one.given); }, runs_.size() > kFewLaunches ? kMostGraphs : 1);
  // Where setting a launch fails, the graph is given up: nobody knows what it is then.
  if (!was_given(call, prepared->given)) {
    std::vector<KernelLaunch> wanted = launches(code, call);
    if (!fixed_ && std::ranges::any_of(wanted, [](const KernelLaunch& launch) { return launch.blocks == 0; })) {
      for (const KernelLaunch& each : wanted)
        if (each.blocks > 0) launch_kernel(each, call.stream);
      if (prepared->graph) code.give_back(std::move(prepared));
      return;
    }
    if (prepared->graph)
      for (std::size_t i = 0; i < wanted.size(); ++i) prepared->graph->set(i, wanted[i]);
    else prepared->graph = std::make_unique<LaunchGraph>(std::move(wanted), after_, code.kernels_wait());
    prepared->given.clear();
    for_each_given(call, [&](std::uint64_t bits) { prepared->given.push_back(bits); });
  }
  prepared->graph->launch(call.stream);
  code.give_back(std::move(prepared));
}

void CardProgram::launch_timed(const CardCode& code, const Call& call) const {
  std::vector<KernelLaunch> launched;
  std::vector<std::size_t> steps;
  for (const Run& run : runs_)
    if (KernelLaunch one = launch(run, code, call); one.blocks > 0) launched.push_back(std::move(one)), steps.push_back(run.kernel);
  const std::vector<double> times = timed_launches(launched, call.stream);
  std::map<std::size_t, double> taken;  // by step: a step may have more than one launch
  for (std::size_t i = 0; i < steps.size(); ++i) taken[steps[i]] += times[i];
  for (const auto& [step, microseconds] : taken) host_.log(TENON_INFO, codegen::step_line(graph_, plan_.plan, number_, step, call.symbols, microseconds), "kernel_times");
}

std::vector<KernelLaunch> CardProgram::launches(const CardCode& code, const Call& call) const {
  std::vector<KernelLaunch> all;
  for (const Run& run : runs_) all.push_back(launch(run, code, call));
  return all;
}

KernelLaunch CardProgram::launch(const Run& run, const CardCode& code, const Call& call) const {
  const Schedule& schedule = code.schedule(run.kernel);
  const std::int64_t blocks = std::max<std::int64_t>(schedule.blocks().evaluate(call.symbols), 0) * static_cast<std::int64_t>(run.count);
  if (blocks > std::numeric_limits<std::int32_t>::max()) throw Failure(TENON_UNSUPPORTED, fmt::format("a kernel of {} blocks is more than a grid has", blocks));
  KernelLaunch made{code.function(run.kernel), static_cast<unsigned>(blocks), schedule.launch_bytes(), {}, schedule.runs > 1 ? run.parameters.size() : 1};
  made.values.reserve(run.parameters.size() + schedule.symbols.size());
  for (const Parameter& parameter : run.parameters) made.values.push_back(call.value(parameter));
  for (const ir::SymbolId symbol : schedule.symbols) made.values.push_back(static_cast<std::uint64_t>(call.symbols[symbol.value]));
  return made;
}

}  // namespace tenon::cuda
