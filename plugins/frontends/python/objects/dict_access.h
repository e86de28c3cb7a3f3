// Dicts past the overrides of their subclasses, by the rules of the class that keeps the order (dict, OrderedDict).
#pragma once

#include "python/objects/ref.h"

namespace tenon::python {

/// Stores, or deletes without a value. Throws PythonError.
void set_past_override(PyObject* dict, PyObject* key, PyObject* value);
void clear_past_override(PyObject* dict);
/// Whether the dict is an OrderedDict.
bool keeps_own_order(PyObject* dict);
/// Whether the dict's own order is that in which its keys came, by which C code that knows dicts alone goes: not an OrderedDict's after move_to_end().
bool keeps_order_of_insertion(PyObject* dict);
/// Moves the keys of an OrderedDict to the order in which `keys`, a dict, has the same ones.
void move_to_order(PyObject* dict, PyObject* keys);
/// A list of pairs in the dict's order.
Ref items_past_override(PyObject* dict);

}  // namespace tenon::python
