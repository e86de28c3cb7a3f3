#include "python/segments/source_line.h"

#include "python/objects/graph_break.h"
#include "python/objects/imported.h"
#include "python/objects/ref.h"

namespace tenon::python {
namespace {

std::string stripped(PyObject* text, int* indent) {
  const char* chars = PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : nullptr;
  if (chars == nullptr) {
    PyErr_Clear();
    return {};
  }
  const std::string line = chars;
  const std::size_t first = line.find_first_not_of(" \t\f\r\n");
  if (first == std::string::npos) return {};
  if (indent) *indent = static_cast<int>(first);
  return line.substr(first, line.find_last_not_of(" \t\r\n") - first + 1);
}

/// The lines of a file that `linecache` has not read for anyone else.
Ref lines_of(PyObject* linecache, PyObject* entries, PyObject* file) {
  static PyObject* const read = checked(PyDict_New()).release();
  if (PyObject* known = PyDict_GetItemWithError(read, file)) return Ref::borrow(known);
  Ref lines = checked(PyObject_CallMethod(linecache, "getlines", "O", file));
  if (checked(PyDict_Contains(entries, file)) != 0) checked(PyDict_DelItem(entries, file));
  checked(PyDict_SetItem(read, file, lines.get()));
  return lines;
}

}  // namespace

std::string source_line(PyObject* file, int line, int* indent) {
  try {
    Ref linecache = checked(imported("linecache")), entries = checked(interned_attribute(linecache.get(), "cache"));
    if (!PyDict_Check(entries.get()) || checked(PyDict_Contains(entries.get(), file)) != 0)
      return stripped(checked(PyObject_CallMethod(linecache.get(), "getline", "Oi", file, line)).get(), indent);
    Ref lines = lines_of(linecache.get(), entries.get(), file);
    return line >= 1 && line <= PyList_Size(lines.get()) ? stripped(PyList_GET_ITEM(lines.get(), line - 1), indent) : std::string();
  } catch (const PythonError&) {
    PyErr_Clear();
    return {};
  }
}

}  // namespace tenon::python
