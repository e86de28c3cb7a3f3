// What stands for a number or a text that varies: its type, and the break where its value is needed.
#pragma once

#include "python/objects/ref.h"
#include "python/stand_ins/symbolic_scalar.h"
#include "python/symbols/symbols.h"

namespace tenon::python {

/// The type that the program must see of a stand-in of an int, a float or a text; null for others.
PyTypeObject* type_of_number(PyObject* stand_in);
/// Breaks where the value itself is needed: the graph ends before it, or the next capture takes what it is made of as constants.
[[noreturn]] void need_scalar(Symbols& symbols, const ScalarValue& scalar, const char* use);
/// The same for a call that the library makes itself, of which an argument is made of such numbers.
[[noreturn]] void need_scalar_for_call(Symbols& symbols, const ScalarValue& scalar);
[[noreturn]] void need_text(Symbols& symbols, PyObject* text, const char* use);

}  // namespace tenon::python
