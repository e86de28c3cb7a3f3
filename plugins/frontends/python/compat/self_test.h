// Tries out, once a process, the promises of CPython that the guards rest on.
#pragma once

namespace tenon::python::compat {

/// Whether versions of dicts and types change when and only when their contents do. Where they do not (a patched or unknown build),
/// guards look everything up each time: slower, never wrong.
bool versions_work();

}  // namespace tenon::python::compat
