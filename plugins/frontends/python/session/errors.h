// The exceptions of the package, as C++ raises them.
#pragma once

#include <cstdint>
#include <string>

#include "python/objects/ref.h"

namespace tenon::python {

enum class ErrorClass : std::uint8_t { error, graph_break, compile, plugin, config };

/// Sets the Python exception of that class. The package hands the classes over when it is imported; before that it is RuntimeError.
void set_error(ErrorClass kind, const std::string& message);

/// Sets the exception with the one that is set now as its `__cause__`, whose type and words end the message.
void set_error_from_current(ErrorClass kind, const std::string& message);

/// Sets the exception for what libtenon's last call on this thread reported.
void set_host_error();

/// Takes over the classes, in the order of ErrorClass.
void take_error_classes(Ref classes[5]);

}  // namespace tenon::python
