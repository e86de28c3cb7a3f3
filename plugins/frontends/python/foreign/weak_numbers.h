// What numbers of Python have to say about the dtype of a call.
#pragma once

#include <cstdint>

#include "python/foreign/foreign_names.h"

namespace tenon::python {

/// Whether a number of Python has no say about the dtype: for NumPy beside operands of ufuncs, and in what does as they do. Of other
/// numbers NumPy makes arrays first.
bool takes_weak(const ForeignFunction& function, PyObject* args, PyObject* kwargs, PyObject* number);

/// What torch makes of a number of Python beside tensors of half precision.
enum class BesideHalves : std::uint8_t {
  unknown,
  rounded,     // to the tensors' type, as a tensor of it
  in_float32,  // the kernel computes in float32 (ATen's opmath_type), with the number as one
};
BesideHalves beside_halves(const ForeignFunction& function, PyObject* args, PyObject* number);

/// Whether a scalar of NumPy is a positional argument.
bool has_scalar_of_numpy(PyObject* args);

}  // namespace tenon::python
