// What numbers of Python have to say about the dtype of a call.
#pragma once

#include <optional>

#include "python/foreign/foreign_names.h"

namespace tenon::python {

/// Whether a number of Python has no say about the dtype: for NumPy beside operands of ufuncs, and in what does as they do. Of other
/// numbers NumPy makes arrays first.
bool takes_weak(const ForeignFunction& function, PyObject* args, PyObject* kwargs, PyObject* number);

/// The dtype that torch gives a number of Python beside tensors of half precision before it computes; nothing where that is not known.
std::optional<DType> dtype_beside_halves(const ForeignFunction& function, PyObject* args, PyObject* kwargs, PyObject* number, DType half);

/// Whether a scalar of NumPy is a positional argument.
bool has_scalar_of_numpy(PyObject* args);

}  // namespace tenon::python
