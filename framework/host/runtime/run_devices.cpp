#include "host/runtime/run_devices.h"

#include <algorithm>
#include <exception>

namespace tenon::host {

RunDevices::RunDevices(const std::vector<Device*>& devices) {
  for (Device* device : devices) states_.push_back({device, nullptr, 0, nullptr, nullptr, {}});
}

void RunDevices::plan_arena(std::uint32_t device, std::size_t bytes, std::vector<ArenaPointer> pointers) {
  State& state = states_[device];
  state.arena_bytes = bytes;
  state.pointers = std::move(pointers);
  state.placed_at = nullptr;
}

void RunDevices::begin(void* given) {
  for (std::size_t d = 1; d < states_.size(); ++d) {
    State& state = states_[d];
    state.device->require_usable();
    state.stream = given && states_.size() == 2 ? given : state.device->current_stream();
    if (state.arena_bytes == 0) continue;
    state.arena = state.device->allocate(state.arena_bytes, state.stream);
    if (state.arena == state.placed_at) continue;
    for (const ArenaPointer& p : state.pointers) *p.pointer = static_cast<std::byte*>(state.arena) + p.offset;
    state.placed_at = state.arena;
  }
}

void RunDevices::settle() noexcept {
  for (const Arrival& arrival : arrivals_) {
    try {
      drain(device(arrival.from), stream(arrival.from));
    } catch (const std::exception&) {
      // The run has failed and told why; a device that is lost writes no more.
    }
  }
  arrivals_.clear();
}

void RunDevices::give_back_arenas() noexcept {
  for (State& state : states_) {
    if (!state.arena) continue;
    state.device->release(state.arena, state.arena_bytes, state.stream);
    state.arena = nullptr;
  }
}

void RunDevices::note_arrival(std::uint32_t value, std::uint32_t from) {
  Arrival& arrival = arrivals_.emplace_back(Arrival{value, from, {}});
  arrival.event = Event(device(from), stream(from));
}

void RunDevices::wait_for(const Arrival& arrival) {
  if (arrival.event.is_marked()) return arrival.event.wait();
  drain(device(arrival.from), stream(arrival.from));
}

void RunDevices::wait_for(std::span<const std::uint32_t> values) {
  for (std::size_t i = 0; i < arrivals_.size();) {
    if (std::ranges::find(values, arrivals_[i].value) == values.end()) {
      ++i;
      continue;
    }
    wait_for(arrivals_[i]);
    std::swap(arrivals_[i], arrivals_.back());
    arrivals_.pop_back();
  }
}

void RunDevices::wait_for_all() {
  for (; !arrivals_.empty(); arrivals_.pop_back()) wait_for(arrivals_.back());
}

}  // namespace tenon::host
