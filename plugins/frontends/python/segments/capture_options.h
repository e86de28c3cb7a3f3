// What a capture is asked for.
#pragma once

#include <cstddef>

#include "python/segments/plain_functions.h"
#include "python/segments/stepped_loops.h"

namespace tenon::python {

struct CaptureOptions {
  bool is_compiling = true;  // the answer to torch.compiler.is_compiling() while capturing
  bool self_check = true;    // evaluate all guards right after the rollback; one that fails discards the segment
  bool leave_loops = false;  // those that go round thousands of times end the segment instead of being written out
  SteppedLoops* stepped = nullptr;  // loops of which each round is a segment; those that are found out are added. Null: none is
  PlainFunctions* plain = nullptr;  // functions that are called as they are, and what the others do. Null: none is
  std::size_t stop_before = 0;  // ends the segment before this instruction of the outermost run, counted from 1; 0: runs to the return
};

}  // namespace tenon::python
