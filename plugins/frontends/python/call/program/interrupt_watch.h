// Ctrl-C while the GIL is released: handlers of signals run, and what they raise gives the work up.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace tenon::python {

/// Made on the thread that releases the GIL. Python runs handlers on the main thread alone: elsewhere nothing is ever raised.
class InterruptWatch {
 public:
  /// For TenonCompileRequest.cancelled, with the watch as context: without the GIL, on any thread.
  static std::int32_t asked(void* watch);

 private:
  void run_handlers();

  const std::thread::id thread_ = std::this_thread::get_id();
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  std::atomic<bool> raised_{false};
};

}  // namespace tenon::python
