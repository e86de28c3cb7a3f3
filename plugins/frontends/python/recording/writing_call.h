// A call that writes: what to compute, and where it goes.
#pragma once

#include <cstdint>
#include <optional>

#include "python/foreign/foreign_names.h"
#include "python/objects/ref.h"

namespace tenon::python {

struct WritingCall {
  enum class Kind : std::uint8_t {
    none,    // out=None: writes nothing
    output,  // the result of the call with `args` and `kwargs` goes to `target`
    itself,  // an in-place function, whose result is the new value of its first argument
  };
  Ref args, kwargs, target;
  Kind kind = Kind::none;
};

/// Nothing for a call that does not write.
std::optional<WritingCall> as_writing_call(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs);
/// Whether a call that writes does so because of its parameter `inplace`.
bool asks_in_place(PyObject* callable, PyObject* kwargs);

}  // namespace tenon::python
