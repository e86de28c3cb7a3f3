// Built-in iterators that are older than the call: looked at through copies, so that the program's own stays where it is.
#pragma once

#include <functional>

#include "python/objects/ref.h"

namespace tenon::python {

/// An iterator of its own that stands where this one stands, over the same items. Empty (no exception) for a kind that cannot be copied
/// without side effects, and for one over others that somebody else may advance.
Ref copy_of_iterator(PyObject* iterator) noexcept;

/// The item after the next `index` ones, or empty at the end. The iterator is not advanced.
Ref upcoming_item(PyObject* iterator, Py_ssize_t index) noexcept;

/// Whether an iterator walks over a container that `is_one` knows, itself or through the iterators inside of it.
bool walks_over(PyObject* iterator, const std::function<bool(PyObject*)>& is_one);

}  // namespace tenon::python
