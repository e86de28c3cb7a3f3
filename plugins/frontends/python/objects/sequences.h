// Python's tuples and lists from references.
#pragma once

#include <vector>

#include "python/objects/ref.h"

namespace tenon::python {

inline Ref tuple_of(std::vector<Ref> items) {
  Ref tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(items.size())));
  for (std::size_t at = 0; at < items.size(); ++at) PyTuple_SET_ITEM(tuple.get(), at, items[at].release());
  return tuple;
}

inline Ref list_of(std::vector<Ref> items) {
  Ref list = checked(PyList_New(static_cast<Py_ssize_t>(items.size())));
  for (std::size_t at = 0; at < items.size(); ++at) PyList_SET_ITEM(list.get(), at, items[at].release());
  return list;
}

}  // namespace tenon::python
