// Handlers of signals, which wait while Tenon runs Python code whose exceptions it does not hand on: what a handler raises there would be
// taken for an exception of that code, and be lost.
#pragma once

#include <Python.h>

#include "python/objects/ref.h"

namespace tenon::python::compat {

/// While it lives, no handler runs: signals stay pending. For the thread that runs handlers, outside of another one; nothing elsewhere, nor
/// where CPython does not show how to do it. Needs the GIL where it begins and ends.
class SignalsWait {
 public:
  explicit SignalsWait(bool wanted = true) noexcept : thread_(wanted ? begin() : 0) {}
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;
  ~SignalsWait() {
    if (thread_) end();
  }

 private:
  static unsigned long begin() noexcept;
  void end() noexcept;

  const unsigned long thread_;  // that handles signals; 0: not here
};

/// Lets handlers run again while it lives, inside a SignalsWait: code of the user's that is to be interrupted.
class SignalsPass {
 public:
  SignalsPass() noexcept;
  SignalsPass(const SignalsPass&) = delete;
  SignalsPass& operator=(const SignalsPass&) = delete;
  ~SignalsPass();

 private:
  const unsigned long thread_;
};

/// Runs the handlers of signals that wait, on the thread that runs handlers. True when one has raised something, which is kept then: no
/// other one runs until it is taken. Needs the GIL, and no exception set.
bool run_waiting_handlers();
/// Whether there is something that a handler has raised.
bool has_interrupt();
/// Takes it. Empty when there is nothing.
Ref take_interrupt();
/// Raises it in the Python code that runs next: at its first instruction that looks for signals.
void raise_interrupt_in_next_code();

}  // namespace tenon::python::compat
