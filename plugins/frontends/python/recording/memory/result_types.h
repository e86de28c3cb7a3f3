// Of which kind and type the results of a call are, as far as the function and its keywords say it.
#pragma once

#include "python/foreign/foreign_names.h"
#include "python/metadata/tensor_spec.h"

namespace tenon::python {

/// Whether a keyword asks for another memory layout than the operand's.
bool kwargs_name_a_layout(PyObject* kwargs);

/// Whether a call gives () or []: no tensors, and nothing else.
bool is_empty_sequence(PyObject* answer);

/// Whether a function computes element by element, so that operands have the say about the result's strides. NumPy's products are ufuncs, too.
bool is_pointwise(const ForeignFunction& function);

/// Sets kind and Python type of a fresh result: torch.Tensor, numpy.ndarray, or a NumPy scalar for most 0-d results of NumPy.
void set_result_type(TensorSpec& spec, const ForeignFunction& function, bool all_scalars);

}  // namespace tenon::python
