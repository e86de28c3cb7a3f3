#include "python/tensors/source_text.h"

#include "python/heap/ref.h"

namespace tenon::python {
namespace {

std::string text(PyObject* unicode) {
  const char* utf8 = unicode && PyUnicode_Check(unicode) ? PyUnicode_AsUTF8(unicode) : nullptr;
  if (!utf8) PyErr_Clear();
  return utf8 ? utf8 : "";
}

std::string stripped(std::string line) {
  const auto first = line.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return {};
  return line.substr(first, line.find_last_not_of(" \t\r\n") - first + 1);
}

}  // namespace

std::string source_line(const std::string& file, int line) {
  Ref linecache = Ref::steal(PyImport_ImportModule("linecache"));
  Ref found = linecache ? Ref::steal(PyObject_CallMethod(linecache.get(), "getline", "si", file.c_str(), line)) : Ref();
  if (!found) PyErr_Clear();
  return stripped(text(found.get()));
}

ir::Location source_location(PyCodeObject* code, int byte_offset) {
  ir::Location location;
  location.file = text(code->co_filename);
  location.line = PyCode_Addr2Line(code, byte_offset);
  location.function = text(code->co_name);
  location.code = source_line(location.file, location.line);
  return location;
}

}  // namespace tenon::python
