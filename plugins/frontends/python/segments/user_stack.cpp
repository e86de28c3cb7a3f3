#include "python/segments/user_stack.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "python/objects/ref.h"
#include "python/segments/source_line.h"

namespace tenon::python {

std::string text_or_empty(PyObject* string) {
  const char* chars = string && PyUnicode_Check(string) ? PyUnicode_AsUTF8(string) : nullptr;
  if (chars == nullptr) PyErr_Clear();
  return chars ? chars : "";
}

namespace {

int characters(std::string_view text) {
  return static_cast<int>(std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

/// Sets the part of the line, from columns of the file in bytes. What goes over several lines is marked to the end of the first.
void mark_part(StackEntry& entry, int indent, const SourcePosition& position) {
  if (position.column < indent || entry.code.empty()) return;
  const std::string_view code = entry.code;
  const auto begin = static_cast<std::size_t>(position.column - indent);
  const std::size_t end = position.end_line == position.line && position.end_column >= indent ? static_cast<std::size_t>(position.end_column - indent) : code.size();
  if (begin >= end || end > code.size()) return;  // the file is another one by now
  entry.begin = characters(code.substr(0, begin));
  entry.end = entry.begin + characters(code.substr(begin, end - begin));
}

/// Whether the frame runs code of this package.
bool is_of_package(PyFrameObject* frame) {
  const Ref globals = Ref::steal(PyFrame_GetGlobals(frame));
  const std::string name = globals && PyDict_Check(globals.get()) ? text_or_empty(PyDict_GetItemString(globals.get(), "__name__")) : std::string();
  return name == "tenon" || name.starts_with("tenon.");
}

}  // namespace

StackEntry stack_entry(PyCodeObject* code, const SourcePosition& position) {
  int indent = 0;
  StackEntry entry{text_or_empty(code->co_filename), position.line, text_or_empty(code->co_name), source_line(code->co_filename, position.line, &indent)};
  mark_part(entry, indent, position);
  return entry;
}

std::string stack_text(std::span<const StackEntry> stack) {
  constexpr std::size_t kMostShown = 24;
  std::string text;
  for (std::size_t i = 0; i < stack.size(); ++i) {
    if (stack.size() > kMostShown && i == kMostShown / 2) {
      const std::size_t left_out = stack.size() - kMostShown;
      text += fmt::format("\n  ... {} more ...", left_out);
      i += left_out;
    }
    const StackEntry& entry = stack[i];
    text += fmt::format("\n  File \"{}\", line {}, in {}", entry.file, entry.line, entry.function);
    if (!entry.code.empty()) text += "\n    " + entry.code;
    if (entry.begin >= 0) text += fmt::format("\n    {}{}", std::string(static_cast<std::size_t>(entry.begin), ' '), std::string(static_cast<std::size_t>(entry.end - entry.begin), '^'));
  }
  return text;
}

std::vector<StackEntry> running_frames() {
  std::vector<StackEntry> stack;
  Ref frame = Ref::borrow(reinterpret_cast<PyObject*>(PyEval_GetFrame()));
  while (frame) {
    auto* const at = reinterpret_cast<PyFrameObject*>(frame.get());
    const Ref code = Ref::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(at)));
    if (!is_of_package(at)) stack.push_back(stack_entry(reinterpret_cast<PyCodeObject*>(code.get()), position_at(reinterpret_cast<PyCodeObject*>(code.get()), PyFrame_GetLasti(at))));
    frame = Ref::steal(reinterpret_cast<PyObject*>(PyFrame_GetBack(at)));
  }
  std::ranges::reverse(stack);
  return stack;
}

}  // namespace tenon::python
