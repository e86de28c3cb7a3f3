// The kernels of a plan as functions on a card: from the store, else compiled.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "device/module.h"
#include "run/kernels.h"
#include "run/launch_graph.h"
#include "tenon/host_services.h"

namespace tenon::cuda {

class CardCode {
 public:
  /// Loads what a process before has left in the store; else makes PTX, machine code of it where nvJitLink is there, and leaves that there.
  CardCode(const HostServices& host, int ordinal, const ScheduledPlan& plan);

  const Schedule& schedule(std::size_t kernel) const { return schedules_[kernel]; }
  CUfunction function(std::size_t kernel) const { return functions_[kernel]; }
  /// Whether each kernel waits itself for what is before it.
  bool kernels_wait() const { return kernels_wait_; }

  /// A graph, null at first, and what it was last given: of one call at a time.
  struct Prepared {
    std::unique_ptr<LaunchGraph> graph;
    std::vector<std::uint64_t> given;
  };
  /// One that no other call has: the one of which `is_it` holds; else a new one where fewer than `most` wait; else the one that has waited for longest.
  template <class IsIt>
  std::unique_ptr<Prepared> take(const IsIt& is_it, std::size_t most) {
    const std::lock_guard lock(mutex_);
    auto found = std::ranges::find_if(prepared_, [&](const auto& one) { return is_it(*one); });
    if (found == prepared_.end()) {
      if (prepared_.size() < most) return std::make_unique<Prepared>();
      found = prepared_.begin();
    }
    auto taken = std::move(*found);
    prepared_.erase(found);
    return taken;
  }
  void give_back(std::unique_ptr<Prepared> prepared);

 private:
  std::vector<std::unique_ptr<Module>> modules_;  // each has one kernel, which may stand in the plan more than once
  std::vector<Schedule> schedules_;
  std::vector<CUfunction> functions_;
  bool kernels_wait_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Prepared>> prepared_;  // the one that has waited for longest first
};

}  // namespace tenon::cuda
