// A call given as tuple and dict, as the vectorcall protocol has it.
#pragma once

#include <vector>

#include "python/guards/check_program.h"
#include "python/objects/graph_break.h"

namespace tenon::python {

/// The values of a call as the vectorcall protocol has them.
struct FlatCall {
  FlatCall(PyObject* args, PyObject* kwargs) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) values.push_back(PyTuple_GET_ITEM(args, i));
    const std::size_t positional = values.size();
    if (PyDict_GET_SIZE(kwargs) > 0) {
      names = checked(PyTuple_New(PyDict_GET_SIZE(kwargs)));
      PyObject *key = nullptr, *value = nullptr;
      Py_ssize_t position = 0;
      for (Py_ssize_t i = 0; PyDict_Next(kwargs, &position, &key, &value); ++i) {
        PyTuple_SET_ITEM(names.get(), i, Py_NewRef(key));
        values.push_back(value);
      }
    }
    arguments = {values.data(), positional, names.get()};
  }
  std::vector<PyObject*> values;
  Ref names;
  CallArguments arguments;
};

}  // namespace tenon::python
