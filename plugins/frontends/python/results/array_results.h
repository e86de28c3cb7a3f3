// Makes the NumPy arrays and scalars that a compiled call returns.
#pragma once

#include <cstdint>
#include <span>

#include "python/library/numpy_api.h"
#include "python/objects/ref.h"

namespace tenon::python {

/// Makes a writeable array that owns its memory, page-warm from Tenon's pool; `data` gets its first element.
/// Strides in elements. Null with an exception set when there is no memory.
PyObject* new_array(DType dtype, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides, void*& data);

/// Makes a writeable array of zeros that owns its memory, which NumPy allocates. Strides in elements, without gaps.
Ref zeroed_array(DType dtype, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides);

/// A NumPy scalar (numpy.float32 and the like) with the value at `data`.
PyObject* new_array_scalar(DType dtype, const void* data);

/// An array over memory that somebody else owns and that outlives it. Strides in elements.
Ref array_over(DType dtype, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides, void* data, bool writeable);

/// A view of an array: strides and offset in elements, from the array's first element.
Ref array_view(PyObject* base, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides, std::int64_t offset, bool writeable);

}  // namespace tenon::python
