#include "host/runtime/loose_memory.h"

#include <algorithm>
#include <utility>

#include "host/plugins/contact/given_tensor.h"
#include "host/runtime/run_context.h"

namespace tenon::host {
namespace {

std::uint32_t position_of(const std::vector<std::uint32_t>& values, std::uint32_t value) { return static_cast<std::uint32_t>(std::ranges::find(values, value) - values.begin()); }

bool may_be_written(const DLManagedTensorVersioned* tensor) { return !tensor || !(tensor->flags & DLPACK_FLAG_BITMASK_READ_ONLY); }

}  // namespace

LooseMemory::LooseMemory(RunContext& run) : run_(run), first_(run.plan.steps().size()), last_(run.plan.steps().size()) {}

std::uint32_t LooseMemory::add(Block block, std::uint32_t first_step, std::uint32_t last_step) {
  const auto index = static_cast<std::uint32_t>(blocks_.size());
  requests_.push_back({block.bytes, first_step, last_step});
  first_[first_step].push_back(index);
  last_[last_step].push_back(index);
  blocks_.push_back(std::move(block));
  return index;
}

void LooseMemory::add_value(std::uint32_t v, std::size_t bytes) {
  const PlanValue& value = run_.plan.values()[v];
  Block block{.value = v, .device = value.device, .bytes = bytes, .given = run_.plan.steps()[value.first_step]->gives};
  for (std::uint32_t s = value.first_step; s <= value.last_step; ++s) {
    const Step& step = *run_.plan.steps()[s];
    for (std::size_t i = 0; i < step.inputs.size(); ++i)
      if (step.inputs[i] == v) block.slots.push_back(&run_.table[step.first_input + i]);
    for (std::size_t i = 0; i < step.outputs.size(); ++i)
      if (step.outputs[i] == v) block.slots.push_back(&run_.table[step.first_output + i]);
  }
  add(std::move(block), value.first_step, value.last_step);
}

void LooseMemory::add_workspace(std::uint32_t s, std::size_t bytes) {
  Block block{.device = run_.plan.steps()[s]->device, .bytes = bytes};
  block.slots.push_back(&run_.steps[s]->args.workspace);
  add(std::move(block), s, s);
}

void LooseMemory::arrange() {
  for (std::uint32_t s = 0; s < first_.size(); ++s) find_heirs(s);
}

/// An output may have the memory of an input that no later step reads, where the artefact writes it over that.
void LooseMemory::find_heirs(std::uint32_t s) {
  const Step& step = *run_.plan.steps()[s];
  if (!step.artefact || step.late) return;
  std::vector<std::uint32_t> ending = last_[s];
  for (const std::uint32_t b : first_[s]) {
    Block& block = blocks_[b];
    if (block.value == kNone || block.given) continue;
    const auto may_leave_it = [&](std::uint32_t other) {
      const Block& left = blocks_[other];
      const std::uint32_t input = position_of(step.inputs, left.value);
      return requests_[other].first_step < s && left.bytes == block.bytes && left.device == block.device && input < step.inputs.size() &&
             step.artefact->permits_alias(position_of(step.outputs, block.value), input);
    };
    const auto found = std::ranges::find_if(ending, may_leave_it);
    if (found == ending.end()) continue;
    block.heir_of = *found;
    ending.erase(found);
  }
}

void LooseMemory::point(Block& block, void* memory) const {
  block.memory = memory;
  for (void** slot : block.slots) *slot = memory;
}

void LooseMemory::take(Block& block) const {
  point(block, run_.devices->device(block.device).allocate(block.bytes, run_.devices->stream(block.device)));
}

bool LooseMemory::inherit(Block& block) {
  if (block.heir_of == kNone || !may_be_written(blocks_[block.heir_of].tensor)) return false;
  Block& left = blocks_[block.heir_of];
  point(block, std::exchange(left.memory, nullptr));
  block.tensor = std::exchange(left.tensor, nullptr);
  block.watched = left.watched;
  block.inherited = true;
  return true;
}

void LooseMemory::before(std::uint32_t s) {
  const bool as_artefact = run_.steps[s]->plain;
  for (const std::uint32_t b : first_[s]) {
    Block& block = blocks_[b];
    if (block.given && as_artefact) point(block, nullptr);
    else if (!as_artefact || !inherit(block)) take(block);
  }
}

void LooseMemory::give_back(Block& block) const noexcept {
  if (block.tensor) host::give_back(block.tensor, block.watched);
  else if (block.memory) run_.devices->device(block.device).release(block.memory, block.bytes, run_.devices->stream(block.device));
  block.tensor = nullptr;
  block.memory = nullptr;
  block.inherited = false;
}

void LooseMemory::after(std::uint32_t s) noexcept {
  for (const std::uint32_t b : last_[s]) give_back(blocks_[b]);
}

bool LooseMemory::is_over_inputs(std::uint32_t s) const {
  return std::ranges::any_of(first_[s], [&](std::uint32_t b) { return blocks_[b].inherited; });
}

void LooseMemory::leave_artefact(std::uint32_t s) {
  for (const std::uint32_t b : first_[s]) {
    Block& block = blocks_[b];
    if (std::exchange(block.inherited, false)) {
      Block& left = blocks_[block.heir_of];
      left.memory = std::exchange(block.memory, nullptr);
      left.tensor = std::exchange(block.tensor, nullptr);
    } else if (block.tensor) {
      give_back(block);
    }
    if (!block.memory) take(block);
  }
}

bool LooseMemory::awaits(std::uint32_t s, std::uint32_t value) const {
  return std::ranges::any_of(first_[s], [&](std::uint32_t b) { return blocks_[b].value == value && !blocks_[b].memory; });
}

LooseMemory::Block& LooseMemory::block_of(std::uint32_t s, std::uint32_t value) {
  return blocks_[*std::ranges::find_if(first_[s], [&](std::uint32_t b) { return blocks_[b].value == value; })];
}

void LooseMemory::keep(std::uint32_t s, std::uint32_t value, void* data, DLManagedTensorVersioned* tensor, const TenonHost* watched) {
  Block& block = block_of(s, value);
  block.tensor = tensor;
  block.watched = watched;
  point(block, data);
}

void* LooseMemory::take(std::uint32_t s, std::uint32_t value) {
  Block& block = block_of(s, value);
  take(block);
  return block.memory;
}

std::string LooseMemory::missing(std::uint32_t s) const {
  for (const std::uint32_t b : first_[s])
    if (!blocks_[b].memory) return fmt::format("it gave no memory for %{}, which it was to hand over", run_.plan.values()[blocks_[b].value].name);
  return {};
}

void LooseMemory::release_all() noexcept {
  for (Block& block : blocks_) give_back(block);
}

}  // namespace tenon::host
