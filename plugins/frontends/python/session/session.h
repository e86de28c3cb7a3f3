// The process's session with libtenon, its counters and logs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "python/objects/ref.h"
#include "tenon/host.h"

namespace tenon::python {

/// The session, made on first use. Null with an exception set when the configuration is wrong.
TenonSession* session();

/// Gives each session made from now on a plugin of this library: of the part that makes calls through Python. Called once, at import.
void set_own_plugin(const TenonPlugin* plugin);

/// What `tenon.stats()` counts, since the last reset. Written and read under the GIL.
struct Counters {
  std::int64_t graphs = 0;           // compiled graphs with at least one op
  std::int64_t graph_breaks = 0;     // captures that ended before the program did
  std::int64_t recompiles = 0;       // captures of a function that had been captured before
  std::int64_t calls = 0;            // calls of compiled functions
  std::int64_t opaque_nodes = 0;     // calls in compiled graphs that torch or NumPy itself makes again on every run
  std::int64_t eager_fallbacks = 0;  // calls that ran as plain Python, or frames of them from a graph break on
  std::int64_t left_to_python = 0;   // continuations given up because they cost more than plain Python
};
Counters& counters();

/// The logs of the frontend that are on.
struct Logs {
  bool graph_code = false, graph_breaks = false, recompiles = false, guards = false, fallbacks = false, autodiff = false;
};
const Logs& logs();
/// Switches logs, the host's too. False with an exception set for an unknown name.
bool set_logs(const std::string& names);

/// Writes lines to stderr, through Python's sys.stderr so that redirections hold.
void log_line(std::string_view text);

/// A JSON document of the session as Python objects; empty with an exception set when it fails.
Ref query(const char* what);
/// The same of a program.
Ref query(TenonProgram* program, const char* what);
/// A document of the session as text.
Ref query_text(const char* what);

}  // namespace tenon::python
