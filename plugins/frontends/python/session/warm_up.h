// Starts the code generator on a thread of its own while the program imports and loads what it needs.
#pragma once

namespace tenon::python {

/// Begins, once a process. The thread needs no Python.
void start_warm_up();
/// Waits for the end, if it was begun. A process that forks or exits must not have the thread: other threads do not exist in a child, and
/// libraries take themselves apart at exit. Called without the GIL.
void finish_warm_up();

}  // namespace tenon::python
