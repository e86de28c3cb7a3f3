// Says which plugin it was when one ends the process.
#pragma once

namespace tenon::host {

/// From now on a call of `exit` or `quick_exit` from inside a watched call of a plugin (plugin_call.h) is told on stderr with plugin and
/// function, and the process does not end as if all were well: a status of 0 becomes kEndedByPlugin. Call it before a plugin is loaded, and
/// after: whatever the plugin does itself when the process ends comes later.
void report_exits();

inline constexpr int kEndedByPlugin = 70;

}  // namespace tenon::host
