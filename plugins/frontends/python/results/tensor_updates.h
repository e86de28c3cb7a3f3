// Writes what a compiled call computed back into the tensors and arrays that it was given.
#pragma once

#include <cstdint>

#include "python/metadata/tensor_spec.h"
#include "python/objects/ref.h"

namespace tenon::python {

/// Copies the elements of `value`, of the same shape, into `target`, of any strides. False with an exception set.
bool write_elements(const TensorSpec& target_spec, PyObject* target, PyObject* value);

/// Counts writes in a torch tensor's `_version`, which autograd compares. False with an exception set.
bool count_writes(const TensorSpec& spec, PyObject* target, std::uint32_t writes);

/// A torch tensor's `_version`; 0 for an inference tensor, which has none. Throws PythonError.
std::uint32_t version_of(const TensorSpec& spec, PyObject* tensor);

}  // namespace tenon::python
