// What the host and tenon-probe say to each other.
#pragma once

namespace tenon::host {

// The helper's arguments are: token, name, kind ("" when unknown), file name of the library. It finds the library open as
// descriptor 3 and answers on descriptor 4 with lines that begin with the token, so that what a plugin prints there counts for
// nothing:
//   TOKEN step NAME                  it enters a step: load, entry, check, create, claim 0, pass NAME 0, ...
//   TOKEN refused {"reason", "text"} the last line: the plugin is refused
//   TOKEN usable {"kind", "passes"}  the last line: the plugin is usable
inline constexpr int kProbeLibrary = 3;
inline constexpr int kProbeAnswer = 4;

}  // namespace tenon::host
