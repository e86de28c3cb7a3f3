// The arguments of a call that is evaluated.
#pragma once

#include <vector>

#include "python/objects/ref.h"

namespace tenon::python {

/// Positional ones, then those given by name.
struct Arguments {
  std::vector<Ref> values;
  Ref names;  // tuple of str, or empty

  std::size_t named() const { return names ? static_cast<std::size_t>(PyTuple_GET_SIZE(names.get())) : 0; }
  std::size_t positional() const { return values.size() - named(); }
  PyObject* operator[](std::size_t index) const { return values[index].get(); }
};

}  // namespace tenon::python
