// The backend that makes opaque calls again: through Python, on the thread that called the program.
#pragma once

#include "tenon/host.h"

namespace tenon::python {

inline constexpr const char* kPythonBackend = "python";

/// The descriptor, for tenon_session_register. It claims opaque nodes that this process recorded, and nothing else.
const TenonPlugin* python_backend();

}  // namespace tenon::python
