// What a function of NumPy's gives for arrays of certain sizes. NumPy has no device on which nothing is computed: large arrays are stood for
// by small ones.
#pragma once

#include <span>
#include <string_view>

#include "python/stand_ins/stand_ins.h"

namespace tenon::python {

/// Calls a function with twins in the places of stand-ins, quietly, and gives its answer: views of the twins, or arrays with metadata that say
/// what the real call gives. What costs much is asked for two choices of small sizes, where what it gives for those leaves no doubt of what it
/// gives for these. A real call that gives something else is refused when it runs. Throws PythonError where it raises.
Ref numpy_answer(StandIns& stand_ins, PyObject* callable, std::string_view name, std::span<const StandIns::Index> operands, PyObject* twin_args, PyObject* twin_kwargs);

}  // namespace tenon::python
