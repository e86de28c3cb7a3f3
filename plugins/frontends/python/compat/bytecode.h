// What each CPython opcode of this version means in the evaluator's instruction set.
#pragma once

#include "python/compat/opcode.h"

namespace tenon::python::compat {

/// How an opcode's argument names a jump target.
enum class Jump : std::uint8_t { none, forward, backward };

struct Meaning {
  Op op = Op::unsupported;
  Jump jump = Jump::none;
  bool skip = false;  // leaves no instruction: caches, prefixes
};

/// The meaning of a raw opcode, before its argument is looked at.
Meaning meaning_of(int raw);

/// Finishes an instruction whose meaning depends on its argument (flags in low bits, intrinsics by number). May append a second
/// instruction: returns true and fills `second` (fused pairs of 3.13, comparisons that are made bools).
bool refine(int raw, int raw_arg, Instruction& instruction, Instruction& second);

/// CPython's number of the prefix that widens the argument of the next instruction.
int extended_arg();

/// Whether a code unit is inline cache.
bool is_cache(int raw);

/// How many instructions at the target of FOR_ITER an exhausted loop jumps over.
int loop_exit_length();

/// Whether `close` of a generator gives what the generator returned on GeneratorExit.
bool close_gives_result();

}  // namespace tenon::python::compat
