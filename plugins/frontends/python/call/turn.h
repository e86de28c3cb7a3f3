// One thread at a time captures and compiles at a place: what several call at once is compiled once.
#pragma once

#include <Python.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "python/compat/waiting_signals.h"
#include "python/objects/gil.h"

namespace tenon::python {

/// Needs the GIL, which others may take while a turn lasts: compiling releases it.
class Turn {
 public:
  /// Waits until no other thread has the turn, or until a signal's handler has raised something (compat::has_interrupt); true where it had
  /// to. The GIL is released meanwhile. A thread that has the turn itself does not wait, nor does the child of a fork for a thread that it
  /// does not have, nor who ends the interpreter for one that waits for it.
  bool wait() const {
    const unsigned long owner = owner_.load();
    if (owner == 0 || owner == PyThread_get_thread_ident() || process_ != getpid() || !Py_IsInitialized()) return false;
    while (owner_.load() == owner && !compat::run_waiting_handlers()) wait_a_little(owner);
    return true;
  }

  /// Has the turn while it lives; nothing where its thread has it already.
  class Taken {
   public:
    explicit Taken(Turn& turn) : turn_(turn), before_(turn.owner_.exchange(PyThread_get_thread_ident())) { turn.process_ = getpid(); }
    Taken(const Taken&) = delete;
    Taken& operator=(const Taken&) = delete;
    ~Taken() { turn_.owner_.store(turn_.process_ == getpid() && before_ == PyThread_get_thread_ident() ? before_ : 0); }

   private:
    Turn& turn_;
    unsigned long before_;
  };

 private:
  void wait_a_little(unsigned long owner) const {
    using namespace std::chrono_literals;
    const GilReleased released;
    for (int i = 0; i < 40 && owner_.load() == owner; ++i) std::this_thread::sleep_for(500us);
  }

  std::atomic<unsigned long> owner_ = 0;  // thread
  pid_t process_ = 0;                     // in which that thread is
};

}  // namespace tenon::python
