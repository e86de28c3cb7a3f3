// What compiling needs, at first and again later: when sizes change, when a backend fails while running.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "host/devices/device_list.h"
#include "host/diagnostics/events.h"
#include "host/plugins/contact/crossing.h"
#include "host/plugins/registry/backend_instance.h"
#include "host/runtime/peak_memory.h"

namespace tenon::host {

class Plan;
class Progress;

/// The plans that are alive in a session: their counts are collected when somebody asks for statistics.
class LivePlans {
 public:
  void add(Plan* plan);
  /// Waits for a collection that runs.
  void remove(Plan* plan);
  /// Adds what all plans have counted since the last time to the counters of their backends.
  void collect();
  /// The largest of any plan's latest run.
  PeakMemory peak_memory();

 private:
  std::mutex mutex_;
  std::vector<Plan*> plans_;
};

/// Shared by a program and everything that is compiled on its behalf.
struct Environment {
  std::shared_ptr<void> session;  // kept alive: its plugins, events and plans are used
  Events* events = nullptr;
  LivePlans* live_plans = nullptr;
  DeviceList* devices = nullptr;
  std::vector<std::shared_ptr<BackendInstance>> backends;  // in order of preference; the last takes what the others leave
  ConstantStore constants;
  std::string options = "{}";      // of each compile, as JSON
  std::size_t artefact_limit = 8;  // plans kept for single sizes, a step
  bool profile = false;            // time every run
  bool check = false;              // run backends on memory that shows what they touch
  Progress* progress = nullptr;    // of the compile that runs; null after it
};

}  // namespace tenon::host
