// The text of a line of the user's source.
#pragma once

#include <Python.h>

#include <string>

namespace tenon::python {

/// The stripped text of a line, empty where no source is found; `indent`, where given: how many bytes were stripped in front of it. Reads through `linecache`, which knows the cells of notebooks too, but leaves there
/// only what was there: the program may look.
std::string source_line(PyObject* file, int line, int* indent = nullptr);

}  // namespace tenon::python
