// What CPython knows of abstract classes and keeps to itself.
#pragma once

#include <cstdint>

namespace tenon::python::compat {

/// Where the number of calls of `register` of all abstract classes is kept. Null where the place does not say so.
const std::uint64_t* registrations();

}  // namespace tenon::python::compat
