// C functions by class: what each reads, changes and calls back decides how the evaluator may run it.
#pragma once

#include <cstdint>
#include <optional>

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

/// The entry of a C function, class or descriptor, or null when it is not in the table (then it is foreign, and breaks).
const Builtin* find_builtin(PyObject* callable);

/// Whether the object is a C function, bound or not, or a descriptor of one.
bool is_builtin_callable(PyObject* object);

/// Whether calling an instance of this C type has no effect and calls no Python code by itself (operator.itemgetter, …).
bool is_pure_callable(PyTypeObject* type);

/// Whether the object is an operator.attrgetter, itemgetter or methodcaller, which the evaluator calls by their parts.
bool is_getter(PyObject* callable);
Ref call_getter(Evaluator& evaluator, PyObject* getter, Arguments& arguments);

/// Whether a method of a built-in container changes it.
bool is_mutating_method(PyObject* self, PyObject* name);

/// Whether a method of a dict or set takes one key (and not an iterable of keys).
bool takes_a_key(PyObject* name);

/// The plain function inside a compiled one, borrowed, or null: calling a compiled function in a capture calls what it wraps.
PyObject* compiled_function_inside(PyObject* callable);

/// An iterator for C code whose steps run in the evaluator, where they are written in Python. Any other is given back as it is.
Ref iterator_for(Evaluator& evaluator, Ref iterator);

/// An iterator for C code that asks the elements: its steps run in the evaluator, so that real tensors do not reach it.
Ref iterator_over_elements(Evaluator& evaluator, Ref iterator);

/// An iterator over an object that has `__getitem__` only, whose steps run in the evaluator.
Ref iterator_by_index(Evaluator& evaluator, PyObject* owner);

/// A callable for C code that runs another one in the evaluator. What cannot be called is given back as it is.
Ref callback_for(Evaluator& evaluator, PyObject* function);

}  // namespace tenon::python
