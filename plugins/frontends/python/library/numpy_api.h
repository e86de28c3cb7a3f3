// NumPy's C API, for every file that needs it: its table is imported once, by library/numpy_api.cpp.
#pragma once

#include <Python.h>

#define PY_ARRAY_UNIQUE_SYMBOL tenon_numpy_api
#define PY_UFUNC_UNIQUE_SYMBOL tenon_ufunc_api
#ifndef TENON_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#define NO_IMPORT_UFUNC
#endif
#include <numpy/arrayobject.h>
#include <numpy/ufuncobject.h>

#include <optional>

#include "core/base/dtype.h"

namespace tenon::python {

/// Loads NumPy's table. False with an exception set when NumPy is absent or too old.
bool import_numpy();

/// NumPy's type number of a dtype; -1 for bfloat16, which NumPy lacks.
int numpy_type(DType dtype);

/// The dtype of a NumPy type number, for the types that graphs carry; nothing for object, string, structured, unsigned > 8 bits, long double.
std::optional<DType> dtype_of_numpy(int type_number);

}  // namespace tenon::python
