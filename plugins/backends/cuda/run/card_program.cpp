#include "run/card_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "device/cards.h"

namespace tenon::cuda {

using codegen::Place;
using ir::ValueId;

namespace {

/// What a number gets of the workspace.
constexpr std::size_t kNumberBytes = kVectorBytes;

std::size_t aligned(std::size_t bytes) { return (bytes + codegen::Placement::kAlignment - 1) & ~(codegen::Placement::kAlignment - 1); }

int ordinal_of(const ir::Graph& graph) {
  for (const ir::Output& output : graph.outputs())
    if (const ir::Device device = graph.type(output.value).device; device.kind == kDLCUDA) return device.index;
  TENON_CHECK(false, "a group gives nothing on a card");
}

ScheduledPlan plan_of(const ir::Graph& graph, bool fuse) {
  if (fuse)
    if (auto plan = scheduled_plan(graph, true)) return *std::move(plan);
  return scheduled_plan(graph, false).value();
}

ir::Graph prepared(ir::Graph graph) {
  prepare(graph);
  return graph;
}

/// Whether every address is as kernels wish.
bool all_aligned(std::span<const void* const> addresses) {
  return std::ranges::all_of(addresses, [](const void* address) { return reinterpret_cast<std::uintptr_t>(address) % kVectorBytes == 0; });
}

}  // namespace

/// Where values lie during a call.
struct CardProgram::Call {
  const TenonExecuteArgs& args;
  std::span<const std::int64_t> symbols;
  CUstream stream;
  std::vector<const void*> inputs;
  std::vector<std::size_t> offsets;  // of the workspace's slots

  CUdeviceptr address(const Place& place) const {
    const auto from = [&](const void* memory) { return reinterpret_cast<CUdeviceptr>(memory) + static_cast<CUdeviceptr>(place.start); };
    if (place.kind == Place::Kind::input) return from(inputs[place.index]);
    if (place.kind == Place::Kind::output) return from(args.outputs[place.index]);
    return from(args.workspace) + offsets[place.index];
  }
};

CardProgram::Code::Code(int ordinal, const ScheduledPlan& plan, const std::string& ptx) : module(ordinal, ptx), schedules(plan.schedules) {
  for (std::size_t i = 0; i < schedules.size(); ++i) functions.push_back(module.function(fmt::format("kernel{}", i)));
}

CardProgram::CardProgram(HostServices host, ir::Graph graph, bool fuse)
    : host_(host), graph_(prepared(std::move(graph))), ordinal_(ordinal_of(graph_)), plan_(plan_of(graph_, fuse)), placement_(graph_, plan_.plan) {
  find_numbers();
  find_launches();
  code_ = compile(plan_);
}

std::unique_ptr<const CardProgram::Code> CardProgram::compile(const ScheduledPlan& plan) const {
  const std::string ptx = ptx_of(plan, Cards::get().at(ordinal_).architecture);
  if (host_.log_enabled("kernel_code")) host_.log(TENON_INFO, ptx, "kernel_code");
  return std::make_unique<const Code>(ordinal_, plan, ptx);
}

/// Views of a tensor may start anywhere: the code for them is made when the first comes.
const CardProgram::Code& CardProgram::loose_code() {
  std::call_once(loose_made_, [&] { loose_ = compile(for_any_start(plan_)); });
  return *loose_;
}

void CardProgram::find_numbers() {
  for (std::size_t i = 0; i < graph_.inputs().size(); ++i)
    if (const ir::Type& type = graph_.type(graph_.inputs()[i]); type.is_host_scalar()) numbers_.push_back({i, size_of(type.dtype)});
}

void CardProgram::find_launches() {
  TENON_CHECK(placement_.copies().empty(), "an output of a group is no result of its own");
  for (std::size_t k = 0; k < plan_.schedules.size(); ++k) {
    const codegen::KernelStep& step = plan_.step(k);
    for (std::size_t run = 0; run <= step.others.size(); ++run) {
      Launch launch{k, {}};
      const auto& values = run == 0 ? step.buffers : step.others[run - 1];
      for (std::size_t b = 0; b < memory_buffers(step.kernel); ++b) {
        TENON_CHECK(!codegen::is_of_thread(values[b]) && placement_[values[b]].kind != Place::Kind::none, "a value of a group lies nowhere");
        launch.buffers.push_back(placement_[values[b]]);
        if (!step.starts.empty()) launch.buffers.back().start = step.starts[run * values.size() + b] * static_cast<std::int64_t>(size_of(step.kernel.buffers[b].dtype));
      }
      launches_.push_back(std::move(launch));
    }
  }
}

std::size_t CardProgram::workspace_bytes(std::span<const std::int64_t> symbols) { return aligned(placement_.workspace_bytes(symbols)) + numbers_.size() * kNumberBytes; }

std::vector<TenonAliasPermit> CardProgram::aliases() const {
  auto permits = placement_.aliases(graph_, plan_.plan);
  std::erase_if(permits, [&](const TenonAliasPermit& permit) { return graph_.type(graph_.inputs()[permit.input]).is_host_scalar(); });
  return permits;
}

void CardProgram::execute(const TenonExecuteArgs& args) {
  const InContext context(ordinal_);
  Call call{args, {args.symbols, graph_.symbols().size()}, static_cast<CUstream>(args.stream), std::vector<const void*>(args.inputs, args.inputs + graph_.inputs().size()), {}};
  if (placement_.has_fixed_sizes()) call.offsets.assign(placement_.fixed_offsets(), placement_.fixed_offsets() + placement_.slot_count());
  else placement_.find_offsets(call.symbols, call.offsets);
  send_numbers(call);
  const bool fits = all_aligned(call.inputs) && all_aligned({args.outputs, graph_.outputs().size()});
  const Code& code = fits ? *code_ : loose_code();
  for (const Launch& each : launches_) launch(each, code, call);
}

void CardProgram::send_numbers(Call& call) const {
  if (numbers_.empty()) return;
  const Driver& driver = Driver::get();
  auto to = reinterpret_cast<CUdeviceptr>(call.args.workspace) + aligned(placement_.workspace_bytes(call.symbols));
  for (const Number& number : numbers_) {
    // Fills take their value with the call: nothing reads the host's memory later.
    std::uint32_t words[2] = {};
    std::memcpy(words, call.inputs[number.input], number.bytes);
    if (number.bytes == 1) driver.fill_8(to, static_cast<unsigned char>(words[0]), 1, call.stream);
    else if (number.bytes == 2) driver.fill_16(to, static_cast<unsigned short>(words[0]), 1, call.stream);
    else for (std::size_t i = 0; i < number.bytes / 4; ++i) driver.fill_32(to + 4 * i, words[i], 1, call.stream);
    call.inputs[number.input] = reinterpret_cast<const void*>(to);
    to += kNumberBytes;
  }
}

void CardProgram::launch(const Launch& launch, const Code& code, const Call& call) const {
  const Schedule& schedule = code.schedules[launch.kernel];
  const std::int64_t blocks = schedule.blocks().evaluate(call.symbols);
  if (blocks <= 0) return;
  if (blocks > std::numeric_limits<std::int32_t>::max()) throw Failure(TENON_UNSUPPORTED, fmt::format("a kernel of {} blocks is more than a grid has", blocks));
  std::vector<std::uint64_t> values;
  for (const Place& place : launch.buffers) values.push_back(call.address(place));
  for (const ir::SymbolId symbol : schedule.symbols) values.push_back(static_cast<std::uint64_t>(call.symbols[symbol.value]));
  std::vector<void*> parameters;
  for (std::uint64_t& value : values) parameters.push_back(&value);
  Driver::get().launch(code.functions[launch.kernel], static_cast<unsigned>(blocks), 1, 1, kBlock, 1, 1, 0, call.stream, parameters.data(), nullptr);
}

}  // namespace tenon::cuda
