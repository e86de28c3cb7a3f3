// Code objects decoded to the evaluator's instruction set.
#pragma once

#include <memory>
#include <vector>

#include "python/compat/opcode.h"
#include "python/objects/ref.h"

namespace tenon::python {

/// A range of instructions with a handler.
struct Handler {
  std::int32_t begin, end;  // instructions
  std::int32_t target;
  std::int32_t depth;   // stack entries to keep
  bool push_lasti;      // the handler wants the offset of the failing instruction below the exception
};

/// Where in the source an instruction comes from. Columns are in bytes; -1 where the code object has none.
struct SourcePosition {
  int line = -1, end_line = -1, column = -1, end_column = -1;
};

/// The position at a byte offset of a code object's instructions.
SourcePosition position_at(PyCodeObject* code, int byte_offset);

struct DecodedCode {
  Ref object;  // the code object
  std::vector<Instruction> instructions;
  std::vector<Handler> handlers;  // sorted by begin

  PyCodeObject* code() const { return reinterpret_cast<PyCodeObject*>(object.get()); }
  PyObject* name(int index) const { return PyTuple_GET_ITEM(code()->co_names, index); }
  PyObject* constant(int index) const { return PyTuple_GET_ITEM(code()->co_consts, index); }
  PyObject* local_name(int slot) const { return PyTuple_GET_ITEM(code()->co_localsplusnames, slot); }
  int local_count() const { return code()->co_nlocalsplus; }
  /// The line of an instruction; of one that has none, as what tidies up after an `except` clause, that of the last one before it.
  int line_of(int instruction) const { return position_of(instruction).line; }
  /// The same with the part of the line.
  SourcePosition position_of(int instruction) const;
  /// The innermost handler of an instruction, or null.
  const Handler* handler_of(int instruction) const;
};

/// Decodes a code object; the result is kept for others for a while, and lives as long as somebody uses it.
std::shared_ptr<const DecodedCode> decoded(PyCodeObject* code);

/// Forgets all decoded code. Captures and frames that run keep theirs: user code and other threads may ask for this at any time.
void forget_decoded_code();

}  // namespace tenon::python
