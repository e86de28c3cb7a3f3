// Which library functions may be recorded as opaque calls: those of which it is known that they only compute.
#pragma once

#include <string>

#include "python/foreign/foreign_names.h"
#include "python/objects/ref.h"

namespace tenon::python {

/// What is known of a function beyond its name.
struct Purity {
  bool known = false;    // torch has a schema for it, the catalogue an op, or it is in the list of NumPy's functions
  bool writes = false;   // into an argument
  bool writes_several = false;  // into more than one
  bool undeclared = false;  // does more than its schema says
  bool random = false;   // takes random numbers, whatever the arguments are
  bool foreign = false;  // an operator that is not the library's own
};

/// Looks the function up once; the answer is kept. Purity does not depend on arguments.
const Purity& purity_of(PyObject* callable, const ForeignFunction& function);

/// Whether this call takes random numbers: for functions that do so only for some arguments (a dropout that is not 0).
bool takes_random_numbers(const ForeignFunction& function, const Purity& purity, PyObject* args, PyObject* kwargs);

/// Why the call cannot be recorded as an opaque one; empty when it can. `random` calls are refused here: whoever keeps the state of the
/// generator records them.
/// `complex`: there are complex numbers among its tensors.
std::string why_not_opaque(PyObject* callable, const ForeignFunction& function, PyObject* args, PyObject* kwargs, bool complex);

}  // namespace tenon::python
