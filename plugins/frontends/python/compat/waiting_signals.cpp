#include "python/compat/waiting_signals.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

#include "python/compat/object_layout.h"
#include "python/objects/imported.h"
#include "python/objects/pending_exception.h"

// Of CPython's pycore_runtime.h, which C++ cannot include: the state of the process, which among others says which thread handles signals.
extern "C" {
PyAPI_DATA(char) _PyRuntime[];
}

namespace tenon::python::compat {
namespace {

constexpr std::size_t kBytesBeforeThread = 8192;  // less than the size of the state in each version

/// Whether this is the thread that handles signals: others are refused before the number of the signal is looked at.
bool handles_signals(PyObject* signal_function) {
  Ref given = Ref::steal(PyObject_CallFunction(signal_function, "ii", -1, 0));
  Ref refusal = given ? Ref() : take_exception();
  Ref text = refusal ? Ref::steal(PyObject_Str(refusal.get())) : Ref();
  const char* words = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  PyErr_Clear();
  return words && std::string_view(words).find("main thread") == std::string_view::npos;
}

/// Where CPython keeps the thread that handles signals, found by trying: with another value there, this thread must not handle them.
unsigned long* find_thread_place(PyObject* signal_function) {
  const unsigned long own = PyThread_get_thread_ident();
  auto* const words = reinterpret_cast<unsigned long*>(&_PyRuntime[0]);
  for (std::size_t at = 0; at < kBytesBeforeThread / sizeof *words; ++at) {
    if (words[at] != own) continue;
    words[at] = 0;
    const bool found = !handles_signals(signal_function);
    words[at] = own;
    if (found) return &words[at];
  }
  return nullptr;
}

/// Null where it is not known, or not yet: only the thread that handles signals can find it.
unsigned long* thread_place() {
  static unsigned long* place = nullptr;
  static bool tried = false;
  if (tried) return place;
  PendingException pending;
  Ref module = Ref::steal(imported("_signal"));
  Ref function = module ? Ref::steal(PyObject_GetAttrString(module.get(), "signal")) : Ref();
  if (function && handles_signals(function.get())) {
    tried = true;
    place = find_thread_place(function.get());
  }
  PyErr_Clear();
  return place;
}

unsigned long set_handling_thread(unsigned long thread) { return std::exchange(*thread_place(), thread); }

/// Lets the thread see again the signals that came while nobody handled them.
void look_for_signals() {
#if PY_VERSION_HEX >= 0x030D0000
  constexpr uintptr_t kSignalsPending = 1U << 1;  // _PY_SIGNALS_PENDING_BIT of pycore_ceval.h, which is taken off where a thread finds that it handles none
  __atomic_fetch_or(&PyThreadState_Get()->eval_breaker, kSignalsPending, __ATOMIC_RELAXED);
#else
  PyEval_RestoreThread(PyEval_SaveThread());  // who takes the lock looks for them
#endif
}

unsigned long waiting_thread = 0;  // of the SignalsWait that is there
PyObject* interrupt = nullptr;     // what a handler has raised

int raise_interrupt(void*) {
  if (!interrupt) return 0;
  set_exception(take_interrupt());
  return -1;
}

}  // namespace

unsigned long SignalsWait::begin() noexcept {
  if (!thread_place() || *thread_place() != PyThread_get_thread_ident()) return 0;
  return waiting_thread = set_handling_thread(0);
}

void SignalsWait::end() noexcept {
  waiting_thread = 0;
  set_handling_thread(thread_);
  look_for_signals();
}

SignalsPass::SignalsPass() noexcept : thread_(waiting_thread == PyThread_get_thread_ident() ? std::exchange(waiting_thread, 0) : 0) {
  if (!thread_) return;
  set_handling_thread(thread_);
  look_for_signals();
}

SignalsPass::~SignalsPass() {
  if (!thread_) return;
  set_handling_thread(0);
  waiting_thread = thread_;
}

bool run_waiting_handlers() {
  if (interrupt) return true;
  const bool wait = waiting_thread != 0 && waiting_thread == PyThread_get_thread_ident();
  if (wait) set_handling_thread(waiting_thread);
  if (PyErr_CheckSignals() < 0) interrupt = take_exception().release();
  if (wait) set_handling_thread(0);
  return interrupt != nullptr;
}

bool has_interrupt() { return interrupt != nullptr; }

Ref take_interrupt() { return Ref::steal(std::exchange(interrupt, nullptr)); }

void raise_interrupt_in_next_code() {
  if (interrupt && Py_AddPendingCall(raise_interrupt, nullptr) < 0) set_exception(take_interrupt());
}

}  // namespace tenon::python::compat
