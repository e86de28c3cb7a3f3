// CPython's binary operators by number.
#pragma once

#include <Python.h>

namespace tenon::python {

/// Of each, the one in place comes this much later.
inline constexpr int kPlainOperators = 13;

/// The function of BINARY_OP's argument: the plain operators, then the in-place ones.
binaryfunc operator_function(int operation);

}  // namespace tenon::python
