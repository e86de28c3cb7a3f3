#include "python/session/messages.h"

#include "python/objects/imported.h"
#include "python/objects/pending_exception.h"
#include "python/session/session.h"

namespace tenon::python {

void tell(const char* area, const std::string& text) {
  const PendingException pending;
  const Ref module = Ref::steal(imported("tenon._messages"));
  const Ref told = module ? Ref::steal(PyObject_CallMethod(module.get(), "tell", "ss", area, text.c_str())) : Ref();
  if (told) return;
  PyErr_Clear();
  log_line(text);
}

}  // namespace tenon::python
