// Exceptions in words, for reasons and messages.
#pragma once

#include <string>

#include "python/objects/ref.h"

namespace tenon::python {

/// What str() gives; empty where that raises.
std::string text_of_exception(PyObject* exception);

/// "ValueError: text".
std::string type_and_text(PyObject* exception);

/// Takes the exception that is set: the first line of its text.
std::string take_first_line();

}  // namespace tenon::python
