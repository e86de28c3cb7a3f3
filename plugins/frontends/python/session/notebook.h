// Progress of long compiles in notebooks, where nobody sees the process's stderr.
#pragma once

namespace tenon::python {

/// Has the package's `_notebook` show the progress of compiles, where the process is a notebook's. Needs the GIL.
void show_progress_in_notebooks();

}  // namespace tenon::python
