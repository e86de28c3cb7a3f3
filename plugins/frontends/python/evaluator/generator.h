// Generators whose frames the evaluator runs: objects that C code can iterate.
#pragma once

#include "python/evaluator/frame.h"

namespace tenon::python {

bool is_evaluated_generator(PyObject* object);

/// Makes the object for a frame that has just started.
Ref make_generator(std::unique_ptr<Frame> frame);

/// The suspended frame, or null while it runs and when it has finished.
std::unique_ptr<Frame>& generator_frame(PyObject* generator);

/// Whether Python would run code of the generator when it is dropped where it stands: it is inside `try` or `with`, and a handler there
/// does something with GeneratorExit. From 3.12 on every generator is inside a handler for StopIteration, which does not count.
bool has_work_left(const Frame& frame);

}  // namespace tenon::python
