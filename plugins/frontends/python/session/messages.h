// What the frontend says without having been asked: once a place, through Python's logging.
#pragma once

#include <atomic>
#include <string>

namespace tenon::python {

/// Says a text in the logger `tenon.<area>`, at level WARNING (the package's `_messages`); by stderr where that fails. What is set as an exception stays,
/// and what a handler of the program raises is dropped. Needs the GIL, and runs code of the program: its handlers.
void tell(const char* area, const std::string& text);

/// From now on what libtenon says, on whatever thread and in whatever state, waits for `deliver_messages`. Called once, at import.
void listen_to_libtenon();

inline std::atomic<bool> g_messages_wait{false};
/// Whether something waits. Asked at each call.
inline bool messages_wait() { return g_messages_wait.load(std::memory_order_relaxed); }
/// Says by logging what waits, but not while a call is captured. Needs the GIL, and runs code of the program; what is set as an exception stays.
void deliver_messages();

/// Delivers where it ends: around what calls libtenon, whose last error a handler may replace.
struct Delivery {
  Delivery() = default;
  Delivery(const Delivery&) = delete;
  ~Delivery() {
    if (messages_wait()) deliver_messages();
  }
};

}  // namespace tenon::python
