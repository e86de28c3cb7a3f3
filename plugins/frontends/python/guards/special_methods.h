// What a class finds by the names of special methods: all that C code may ask of an instance behind the evaluator's back.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "python/objects/ref.h"

namespace tenon::python {

/// The names, interned.
std::span<PyObject* const> special_method_names();

/// A tuple with what the type finds along its bases by each of the names, in their order. `is_free`: names that a later call may find anything by.
Ref special_methods_of(PyTypeObject* type, const std::function<bool(PyObject* name)>& is_free);

/// Whether the type finds what such a tuple says. Runs no Python code.
bool finds_special_methods(PyTypeObject* type, PyObject* expected) noexcept;

/// The first name by which the type finds something else, borrowed, with what it found then and finds now (null for nothing).
struct ChangedMethod {
  PyObject *name, *expected, *found;
};
std::optional<ChangedMethod> changed_special_method(PyTypeObject* type, PyObject* expected) noexcept;

}  // namespace tenon::python
