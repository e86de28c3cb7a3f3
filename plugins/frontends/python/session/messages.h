// What the frontend says without having been asked: once a place, through Python's logging.
#pragma once

#include <string>

namespace tenon::python {

/// Says a text in the logger `tenon.<area>`, at level WARNING (the package's `_messages`); by stderr where that fails. What is set as an exception stays,
/// and what a handler of the program raises is dropped. Needs the GIL, and runs code of the program: its handlers.
void tell(const char* area, const std::string& text);

}  // namespace tenon::python
