// Dicts past the overrides of their subclasses, by the rules of the class that keeps the order (dict, OrderedDict).
#pragma once

#include "python/objects/ref.h"

namespace tenon::python {

class Heap;

/// Stores, or deletes without a value. Throws PythonError.
void set_past_override(PyObject* dict, PyObject* key, PyObject* value);
void clear_past_override(PyObject* dict);
/// The key under which a dict holds what the program knows as `key`: for the stand-in of a tensor, the tensor itself where the dict has that.
Ref key_held_by(Heap& heap, PyObject* dict, PyObject* key);
/// Whether the dict is an OrderedDict.
bool keeps_own_order(PyObject* dict);
/// A list of pairs in the dict's order.
Ref items_past_override(PyObject* dict);

}  // namespace tenon::python
