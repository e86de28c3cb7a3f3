#include "python/session/notebook.h"

#include "python/objects/imported.h"
#include "python/objects/ref.h"
#include "tenon/host.h"

namespace tenon::python {
namespace {

/// On a thread of libtenon's. The compile that it is about has given the GIL away, or does not wait for this.
void show(const char* line, double part) {
  const PyGILState_STATE held = PyGILState_Ensure();
  {
    const Ref module = Ref::steal(imported("tenon._notebook"));
    const Ref shown = module ? Ref::steal(PyObject_CallMethod(module.get(), "show", "sd", line, part)) : Ref();
    if (!shown) PyErr_Clear();  // a bar that cannot be drawn is no reason to disturb the program
  }
  PyGILState_Release(held);
}

}  // namespace

void show_progress_in_notebooks() {
  if (is_imported("ipykernel")) tenon_on_progress(show);
}

}  // namespace tenon::python
