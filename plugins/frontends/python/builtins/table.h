// C functions by class: what each reads, changes and calls back decides how the evaluator may run it.
#pragma once

#include <cstdint>
#include <optional>

#include "python/evaluator/builtins.h"
#include "python/objects/ref.h"

namespace tenon::python {

class Evaluator;
struct Arguments;

enum class BuiltinClass : std::uint8_t {
  structural,        // touches no method of an element: list, zip, enumerate, dict views
  element_calling,   // calls elements' ==, hash, <, +, str, …: breaks when one is written in Python
  callback,          // calls functions given to it: they run in the evaluator
  special,           // has a handler
};

struct Builtin {
  BuiltinClass kind;
  /// The result, or empty when a frame was pushed.
  std::optional<Ref> (*handler)(Evaluator&, Arguments&) = nullptr;
  /// The method of the first argument's class that it stands for (`__abs__`), as a name of `names()`, or null.
  PyObject* const* method = nullptr;
};

/// Whether a method of a built-in container changes it.
bool is_mutating_method(PyObject* self, PyObject* name);

/// Whether a method of a dict or set takes one key (and not an iterable of keys).
bool takes_a_key(PyObject* name);

/// An iterator for C code whose steps run in the evaluator, where they are written in Python. Any other is given back as it is.
Ref iterator_for(Evaluator& evaluator, Ref iterator);

/// A callable for C code that runs another one in the evaluator. What cannot be called is given back as it is.
Ref callback_for(Evaluator& evaluator, PyObject* function);

}  // namespace tenon::python
