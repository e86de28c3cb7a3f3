#include "python/segments/exception_text.h"

#include <fmt/format.h>

#include "python/compat/object_layout.h"

namespace tenon::python {

std::string text_of_exception(PyObject* exception) {
  Ref text = Ref::steal(PyObject_Str(exception));
  const char* chars = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (chars == nullptr) PyErr_Clear();
  return chars ? chars : "";
}

std::string type_and_text(PyObject* exception) { return fmt::format("{}: {}", Py_TYPE(exception)->tp_name, text_of_exception(exception)); }

std::string take_first_line() {
  const std::string text = text_of_exception(compat::take_exception().get());
  return text.substr(0, text.find('\n'));
}

}  // namespace tenon::python
