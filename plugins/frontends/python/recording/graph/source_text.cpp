#include "python/recording/graph/source_text.h"

#include <algorithm>

#include "python/decode/code.h"
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

std::string variable_after(PyCodeObject* code, int byte_offset) {
  const auto decoded_code = decoded(code);
  const std::vector<Instruction>& instructions = decoded_code->instructions;
  auto next = std::ranges::upper_bound(instructions, byte_offset / 2, {}, &Instruction::unit);
  return next != instructions.end() && next->op == Op::store_fast ? text(decoded_code->local_name(next->arg)) : std::string();
}

}  // namespace tenon::python
