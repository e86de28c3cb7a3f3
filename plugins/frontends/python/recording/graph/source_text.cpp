#include "python/recording/graph/source_text.h"

#include "python/segments/source_line.h"

namespace tenon::python {
namespace {

std::string text(PyObject* unicode) {
  const char* utf8 = unicode && PyUnicode_Check(unicode) ? PyUnicode_AsUTF8(unicode) : nullptr;
  if (!utf8) PyErr_Clear();
  return utf8 ? utf8 : "";
}

}  // namespace

ir::Location source_location(PyCodeObject* code, int byte_offset) {
  ir::Location location;
  location.file = text(code->co_filename);
  location.line = PyCode_Addr2Line(code, byte_offset);
  location.function = text(code->co_name);
  location.code = source_line(code->co_filename, location.line);
  return location;
}

}  // namespace tenon::python
