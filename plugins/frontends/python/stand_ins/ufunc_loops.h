// The dtypes that NumPy computes a call of a ufunc with, by NumPy's own rules.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/base/dtype.h"
#include "python/stand_ins/stand_ins.h"

namespace tenon::python {

/// Whether keywords have a say about the loop of a ufunc: `dtype`, `signature`, `casting`.
bool chooses_loop(std::string_view keyword);

/// The dtypes of the operands and results of a ufunc's loop for a call whose keywords have a say; nothing where they have none. Throws
/// GraphBreak where NumPy refuses the call, and where these operands without the keywords would be computed with other dtypes than
/// with them after conversion to the loop's.
std::optional<std::vector<DType>> chosen_loop(PyObject* ufunc, const StandIns& stand_ins, PyObject* args, PyObject* kwargs);

/// Throws GraphBreak where NumPy refuses to write what a call gives into `output`.
void require_output(PyObject* ufunc, const StandIns& stand_ins, PyObject* args, PyObject* kwargs, PyObject* output);

}  // namespace tenon::python
