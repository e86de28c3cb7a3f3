// Types of the standard library that C Python exports only by import.
#pragma once

#include <Python.h>

namespace tenon::python {

/// `collections.deque`, `OrderedDict`, `defaultdict`, `functools.partial`, …
struct LibraryTypes {
  PyTypeObject *deque, *ordered_dict, *default_dict, *partial, *enum_meta, *mapping_proxy, *lru_cache, *cell, *cached_property, *attribute_getter, *item_getter, *method_caller;
};
const LibraryTypes& library_types();

}  // namespace tenon::python
