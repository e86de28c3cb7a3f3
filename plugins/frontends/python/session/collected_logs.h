// What libtenon's logs say while something is reported.
#pragma once

#include <string>

#include "python/objects/ref.h"

namespace tenon::python {

/// Keeps what the host's logs of these names (separated by commas) say from now on; those that are on still go to stderr. False with an exception set.
bool begin_collecting(const std::string& names);

/// Ends it. A list of (log, plugin or "", text), in the order in which it was said; empty with an exception set.
Ref end_collecting();

/// Says {"what": number} in the log "steps", where that is listened to: to which graph what follows belongs, or in which run it is.
void say_in_steps(const char* what, long number);

}  // namespace tenon::python
