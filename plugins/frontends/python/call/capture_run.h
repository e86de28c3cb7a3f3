// One capture, from recorder to cache entry.
#pragma once

#include <string>
#include <variant>

#include "python/call/cache_entry.h"
#include "python/recording/graph/tensor_places.h"
#include "python/symbols/symbols.h"

namespace tenon::python {

/// The function's name in messages: `__qualname__`, `__name__`, or the type's name.
std::string name_of_callable(PyObject* callable);

/// Which numbers may vary. A backend written in Python gets the sizes of the call.
Dynamic dynamic_of(const Settings& settings, std::optional<bool> otherwise);

/// What a capture may do beside recording.
struct CaptureWishes {
  TensorPlaces::Allowed places;
  bool functions_leave = false;  // so is what functions of the program's with gradients of their own give
  bool freeze = false;       // parameters and buffers that the program does not write become constants under guards
  bool leave_loops = false;  // loops that go round thousands of times are left to plain Python
  bool tries_plain = false;  // functions that draw numbers may be called as they are, on trial
  SteppedLoops* stepped = nullptr;  // loops of which each round is a segment; null where none may be
  PlainFunctions* plain = nullptr;  // functions that are called as they are; null where none may be
};

/// Captures from a start on, under the thread's present state, to the return or to the first break. The entry has no program yet. `state`:
/// torch's, as found before. `history`: of the numbers that earlier captures from this start have seen; this one is added. A break without a
/// segment says why there is none; when it is `interrupted`, the exception is set or kept (compat::take_interrupt).
std::variant<EntryRef, CaptureBreak> capture_segment(const CaptureStart& start, const TorchState& state, const std::string& name, Dynamic dynamic,
                                                     NumberHistory& history, CaptureWishes wishes = {});

/// The text of a GraphBreakError: reason, place, what to do.
std::string break_message(const CaptureBreak& broken, const std::string& name);

}  // namespace tenon::python
