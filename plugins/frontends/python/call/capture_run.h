// One capture of a call, from recorder to cache entry.
#pragma once

#include <memory>
#include <string>
#include <variant>

#include "python/call/cache_entry.h"
#include "python/symbols/symbols.h"

namespace tenon::python {

/// Seconds spent in the phases of making an entry.
struct PhaseTimes {
  double capture = 0, compile = 0;
};

/// The function's name in messages: `__qualname__`, `__name__`, or the type's name.
std::string name_of_callable(PyObject* callable);

/// Which numbers may vary. A backend written in Python gets the sizes of the call.
Dynamic dynamic_of(const Settings& settings);

/// Captures a call under the thread's present state. The entry has no program yet. `state`: torch's, as found before.
/// `history`: of the numbers that earlier captures of the function have seen; this one is added.
std::variant<CacheEntry*, CaptureBreak> capture_call(PyObject* callable, const CallArguments& call, const TorchState& state, Dynamic dynamic,
                                                     NumberHistory& history);

/// The text of a GraphBreakError: reason, place, what to do.
std::string break_message(const CaptureBreak& broken, const std::string& name);

}  // namespace tenon::python
