// What the host and tenon-probe say to each other.
#pragma once

namespace tenon::host {

// The helper's arguments are: token, name, kind ("" when unknown), file name of the library. It finds the library open as
// descriptor 3 and answers on descriptor 4 with lines that begin with the token, so that what a plugin prints there counts for
// nothing:
//   TOKEN step NAME                  it enters a step: load, entry, check, create, claim, compile, ...; of a trial with a number
//   TOKEN refused {"reason", "text"} the last line: the plugin is refused
//   TOKEN usable {"kind", "passes"}  the last line: the plugin is usable
inline constexpr int kProbeLibrary = 3;
inline constexpr int kProbeAnswer = 4;

// Descriptors 5 and 6 are message files (message_file.h). Every request has "call", "create_options" (of a plugin of passes: its options),
// "cache" {"directory", "bytes"} (the store behind cache_get and cache_put, but in a trial; directory "": none) and "logs". By "call":
//   try      lives through all that a backend does, on sample graphs, or runs the passes on them
//   create   makes the backend's object with the options, and destroys it
//   claim    the parts are a buffer, then the bytes of each constant, described by "constants"; the reply has "groups" and "refusals"
//   compile  the same, with "options"; the reply has "constants_read", and the stored artefact as its only part
//   load     the only part is a stored artefact: it is loaded and given back
// Every reply has "code" and "text" of a failure that the backend itself reports, and "counts" of the cache's events.
inline constexpr int kHelperRequest = 5;
inline constexpr int kHelperReply = 6;

}  // namespace tenon::host
