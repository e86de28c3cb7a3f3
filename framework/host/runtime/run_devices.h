// What a run has on devices other than the host: streams, memory, and copies to the host that have not arrived.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "host/devices/device.h"
#include "host/devices/event.h"

namespace tenon::host {

/// Of one context. Devices are known by their positions in the plan's list.
class RunDevices {
 public:
  explicit RunDevices(const std::vector<Device*>& devices);
  RunDevices(const RunDevices&) = delete;

  /// A pointer into the arena of a device, which has another address in each run.
  struct ArenaPointer {
    void** pointer;
    std::size_t offset;
  };
  /// What the arena of a device holds for the sizes of the coming runs.
  void plan_arena(std::uint32_t device, std::size_t bytes, std::vector<ArenaPointer> pointers);

  /// Takes streams and arenas. `given`: the caller's stream, which counts where there is one device. Throws.
  void begin(void* given);
  /// Waits for whatever may still write to the host.
  void settle() noexcept;
  /// Gives the arenas back in the order of their streams.
  void give_back_arenas() noexcept;

  Device& device(std::uint32_t index) const { return *states_[index].device; }
  /// Null for the host.
  void* stream(std::uint32_t index) const { return states_[index].stream; }

  /// Notes that the stream has just been given a copy of a value to the host.
  void note_arrival(std::uint32_t value, std::uint32_t from);
  /// Returns when these values have arrived; those of which nothing was noted are there. Throws when they cannot.
  void wait_for(std::span<const std::uint32_t> values);
  void wait_for_all();

 private:
  struct State {
    Device* device = nullptr;
    void* stream = nullptr;
    std::size_t arena_bytes = 0;
    void* arena = nullptr;       // of the run
    void* placed_at = nullptr;   // where the pointers point
    std::vector<ArenaPointer> pointers;
  };
  struct Arrival {
    std::uint32_t value, from;
    Event event;  // unmarked where the device could not give it
  };
  void wait_for(const Arrival& arrival);

  std::vector<State> states_;  // the first is the host's, and empty
  std::vector<Arrival> arrivals_;
};

}  // namespace tenon::host
