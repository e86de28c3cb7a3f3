// TENON_TRACE: what happens in a process as a trace in Chrome's format, which Perfetto opens.
#pragma once

#include <string>

namespace tenon::host {

/// Writes every range of this process to `path` from now on, where "%p" is the process's number; what was there before is gone. Gives what is wrong, in words, or
/// nothing: then there is no trace, and nothing else happens. A second call in a process does nothing. The file is whole when the process exits;
/// one that ends otherwise leaves it without its last bracket, which the format allows. The child of a fork writes nothing.
///
/// The format: "Trace Event Format", JSON array with complete events (ph "X", times in microseconds).
std::string start_trace(const std::string& path);

}  // namespace tenon::host
