// What guards compare of single objects. Nothing here runs Python code of the program, and no exception stays set.
#pragma once

#include "python/objects/ref.h"

namespace tenon::python::checks {

/// dict[key] past any override, or null.
PyObject* dict_get(PyObject* dict, PyObject* key) noexcept;
/// The value at a place in the order of the dict, or null.
PyObject* dict_value(PyObject* dict, Py_ssize_t index) noexcept;
/// Whether the dict has these keys (a tuple), in this order.
bool same_keys(PyObject* dict, PyObject* expected) noexcept;
/// len() of a built-in container, past any override; -1 where there is none.
Py_ssize_t length_of(PyObject* object) noexcept;
/// object[index], of a deque past any override; null with an exception where there is none.
PyObject* sequence_item(PyObject* sequence, Py_ssize_t index) noexcept;
/// list[index], borrowed; null where the index is out of range.
PyObject* list_item(PyObject* list, std::int64_t index) noexcept;
/// Whether two tuples of strings are equal; null is an empty one.
bool same_names(PyObject* names, PyObject* expected) noexcept;
/// `expected`: (code, defaults, kwdefaults, globals); None for absent, Ellipsis for any.
bool same_function_parts(PyObject* function, PyObject* expected) noexcept;
/// Whether a set holds exactly the items of a tuple, and gives them in that order.
bool same_items_of_set(PyObject* value, PyObject* expected) noexcept;

}  // namespace tenon::python::checks
