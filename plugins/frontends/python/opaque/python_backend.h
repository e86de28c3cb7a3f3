// The backend that makes opaque calls again: through Python, on the thread that called the program.
#pragma once

#include <cstdint>

#include "tenon/host.h"

namespace tenon::python {

inline constexpr const char* kPythonBackend = "python";

/// The descriptor, for tenon_session_register. It claims opaque nodes that this process recorded, and nothing else.
const TenonPlugin* python_backend();

/// From now on it serves devices of that kind (DLPack's number). With the GIL.
void let_python_serve(std::uint8_t kind);

}  // namespace tenon::python
