// A generator that is dropped where it stands: whether Python would run code of it.
#pragma once

#include "python/segments/frame.h"

namespace tenon::python {

/// Whether Python would run code of the generator when it is dropped where it stands: it is inside `try` or `with`, and a handler there
/// does something with GeneratorExit. From 3.12 on every generator is inside a handler for StopIteration, which does not count.
bool has_work_left(const Frame& frame);

}  // namespace tenon::python
