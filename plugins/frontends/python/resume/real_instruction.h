// Runs one instruction of a real frame with CPython's own objects and errors: what the program does at a graph break.
#pragma once

#include "python/compat/real_frame.h"
#include "python/decode/code.h"

namespace tenon::python {

/// What an instruction came to.
enum class Effect : std::uint8_t {
  next,      // goes on with `RealInstruction::following`
  raised,    // an exception is set
  reraised,  // the same, and the frame has its entry in the traceback already
  returned,  // the frame ends with `RealInstruction::result`
  unknown,   // not run: only CPython's interpreter can (`yield` and other rare ones)
};

/// How errors of arguments name what is called; empty with an exception set when that fails.
Ref name_of_call(PyObject* callable);

/// One instruction of the innermost frame. Families of opcodes are members in files of their own: real_operators.cpp, real_building.cpp,
/// real_names.cpp, real_calls.cpp, real_exceptions.cpp. Operands stay on the frame's stack until they have been used, as CPython keeps them.
class RealInstruction {
 public:
  RealInstruction(compat::RealFrame* frame, const DecodedCode& code, int index)
      : frame_(frame), instruction_(code.instructions[index]), following(index + 1) {}

  /// `keyword_names`: what a preceding `kw_names` instruction set, or null.
  Effect run(PyObject* keyword_names);

 private:
  compat::RealFrame* frame_;
  const Instruction instruction_;

 public:
  int following;  // index of the instruction to run next
  Ref result;

 private:
  PyCodeObject* code() const { return compat::code_of(frame_); }
  PyObject* name(int index) const { return PyTuple_GET_ITEM(code()->co_names, index); }
  PyObject* constant(int index) const { return PyTuple_GET_ITEM(code()->co_consts, index); }
  PyObject* local_name(int slot) const { return PyTuple_GET_ITEM(code()->co_localsplusnames, slot); }
  PyObject*& local(int slot) { return compat::slots_of(frame_)[slot]; }

  /// The entry `depth` below the top (1 is the top), borrowed.
  PyObject*& peek(int depth) { return compat::slots_of(frame_)[code()->co_nlocalsplus + compat::stack_size(frame_) - depth]; }
  void push(PyObject* owned) {
    const int size = compat::stack_size(frame_);
    compat::slots_of(frame_)[code()->co_nlocalsplus + size] = owned;
    compat::set_stack_size(frame_, size + 1);
  }
  Ref pop() {
    Ref top = Ref::steal(peek(1));
    compat::set_stack_size(frame_, compat::stack_size(frame_) - 1);
    return top;
  }
  void drop(int count) {
    for (int n = 0; n < count; ++n) pop();
  }
  /// Puts an owned result in the place of `count` operands; null raises.
  Effect replace(int count, PyObject* owned) {
    if (owned == nullptr) return Effect::raised;
    drop(count);
    push(owned);
    return Effect::next;
  }
  /// The end of an instruction whose operands are done with.
  Effect done(int count, int status) {
    if (status < 0) return Effect::raised;
    drop(count);
    return Effect::next;
  }
  Effect jump_if(bool jumps) {
    if (jumps) following = instruction_.target;
    return Effect::next;
  }

  Effect stack();
  Effect names();
  Effect load_global();
  Effect import_name();
  Effect import_from();
  Effect attributes();
  Effect load_super_attribute();
  Effect items();
  Effect operators();
  Effect jumps();
  Effect building();
  Effect build_map();
  Effect extending();
  Effect unpack();
  Effect format();
  Effect call(PyObject* keyword_names);
  Effect call_with(PyObject* keyword_names, int extra);
  Effect call_function_ex();
  Effect functions();
  Effect exceptions();
  Effect raise();
  Effect enter_with();
};

}  // namespace tenon::python
