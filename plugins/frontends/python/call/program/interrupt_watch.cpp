#include "python/call/program/interrupt_watch.h"

#include "python/compat/waiting_signals.h"
#include "python/objects/gil.h"

namespace tenon::python {

std::int32_t InterruptWatch::asked(void* watch) {
  auto& self = *static_cast<InterruptWatch*>(watch);
  if (!self.raised_.load(std::memory_order_relaxed) && std::this_thread::get_id() == self.thread_) self.run_handlers();
  return self.raised_.load(std::memory_order_relaxed);
}

/// Not at each question: a thread that computes in Python gives the GIL away after 5 ms only.
void InterruptWatch::run_handlers() {
  using namespace std::chrono_literals;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < 20ms) return;
  last_ = now;
  const GilHeld gil;
  if (compat::run_waiting_handlers()) raised_.store(true, std::memory_order_relaxed);
}

}  // namespace tenon::python
