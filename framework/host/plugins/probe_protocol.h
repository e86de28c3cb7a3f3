// What the host and tenon-probe say to each other.
#pragma once

namespace tenon::host {

// The helper's arguments are: token, name, kind ("" when unknown), file name of the library. It finds the library open as
// descriptor 3 and answers on descriptor 4 with lines that begin with the token, so that what a plugin prints there counts for
// nothing:
//   TOKEN step NAME                  it enters a step: load, entry, check, create, claim 0, pass NAME 0, claim, compile, ...
//   TOKEN refused {"reason", "text"} the last line: the plugin is refused
//   TOKEN usable {"kind", "passes"}  the last line: the plugin is usable
inline constexpr int kProbeLibrary = 3;
inline constexpr int kProbeAnswer = 4;

// With a further argument, "call", it does not try the plugin but makes one call of a backend for the host: descriptors 5 and 6 are
// message files (message_file.h). The request has "call" (claim or compile), "create_options", "options" and a description of each of
// the "constants"; its parts are the buffer, then the bytes of each constant. The reply has "code" and "text" of a failure; claim adds
// "groups" and "refusals", compile "constants_read" and the stored artefact as its only part. The last line is as above.
inline constexpr int kCallRequest = 5;
inline constexpr int kCallReply = 6;

}  // namespace tenon::host
