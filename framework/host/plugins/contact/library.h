// Loads the library behind an open descriptor and gets its descriptor of itself.
#pragma once

#include <memory>
#include <string>

#include "core/abi/plugin.h"
#include "host/plugins/find/file.h"
#include "host/plugins/find/manifest.h"

namespace tenon::host {

/// What loading tells on its way: the probe reports it, so that a crash can be placed.
using LoadStep = void (*)(const char* step);

/// Loads the library, calls its entry, checks the descriptor. A library is loaded and its entry called once a process, however
/// many sessions ask. The descriptor of the file stays open for the life of the process: glibc knows libraries by name, and a
/// reused /proc/self/fd/N would give the old one. Thread-safe. Throws Refused: unresolved, no_entry, threw, and what
/// check_descriptor throws.
const TenonPlugin* load_library(Descriptor file, const Manifest& manifest, LoadStep step = nullptr);

}  // namespace tenon::host
