// The user's stack for messages: places in the program, each with the part of its line that runs.
#pragma once

#include <Python.h>

#include <span>
#include <string>
#include <vector>

#include "python/decode/code.h"

namespace tenon::python {

/// The text of a string; of anything else nothing. Sets no exception.
std::string text_or_empty(PyObject* string);

struct StackEntry {
  std::string file;
  int line = 0;
  std::string function;
  std::string code;          // the source text of the line, stripped
  int begin = -1, end = -1;  // the part of `code` that runs, in characters; -1 where it is not known
};

/// A place of the program. Reads the source; sets no exception.
StackEntry stack_entry(PyCodeObject* code, const SourcePosition& position);

/// As a traceback tells it, outermost first, with carets under what runs; of a deep stack both ends. Each line begins with a line break.
std::string stack_text(std::span<const StackEntry> stack);

/// The program's frames that run now, outermost first: who has called what is captured. Frames of the package are left out.
std::vector<StackEntry> running_frames();

}  // namespace tenon::python
