// `_tenon.IntStandIn`: stands for an int whose value the graph does not know, such as a size that varies from call to call.
#pragma once

#include <optional>

#include "core/ir/dim.h"
#include "python/objects/ref.h"

namespace tenon::python {

/// An integer as the program must see it: an int for a constant, else a symbolic one. Arithmetic on it builds expressions; a comparison is
/// answered from the present call and guarded; any other use guards the value and goes on with an int. Throws PythonError.
Ref make_integer(const ir::Dim& dim);

bool is_symbolic_int(PyObject* object);

/// The expression behind a symbolic int, or an int or bool of at most 64 bits; none for anything else.
std::optional<ir::Dim> integer_of(PyObject* object);
/// The present value of a symbolic int, without a guard: for questions whose answer is checked otherwise.
std::int64_t present_value(PyObject* symbolic_int);

/// The int itself, with a guard on its value. Throws GraphBreak after the end of the capture.
Ref specialised(PyObject* symbolic_int, const char* why);

/// `__array_ufunc__` of numbers that vary, of which NumPy would make an array of objects: it breaks the graph.
PyObject* ufunc_of_number(PyObject* self, PyObject* args, PyObject* kwargs);
inline const PyMethodDef kUfuncMethod = {"__array_ufunc__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(ufunc_of_number)), METH_VARARGS | METH_KEYWORDS, nullptr};

/// The type object, made when first asked for.
PyTypeObject* symbolic_int_type();

}  // namespace tenon::python
