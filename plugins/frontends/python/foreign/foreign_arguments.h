// Turns the Python arguments of a library call into what the catalogue binds.
#pragma once

#include <functional>

#include "core/ops/foreign/foreign_call.h"
#include "python/foreign/foreign_names.h"
#include "python/objects/ref.h"

namespace tenon::python {

/// Gives the graph value of a stand-in, of an array or NumPy scalar made during the capture; none for another object. May throw GraphBreak.
using ValueOf = std::function<std::optional<ir::ValueId>(PyObject*)>;

/// Converts one argument. Throws GraphBreak for what cannot stand in a graph.
ops::ForeignArgument foreign_argument(PyObject* object, ops::Flavour flavour, const ValueOf& value_of);

/// The device that a call of torch's names, as it does: by the keyword, or among the others (Trait::moves). Null for none.
PyObject* device_argument(const ForeignFunction& function, PyObject* args, PyObject* kwargs);

/// Converts all arguments of a call whose tensors are `here`; `kwargs` is a dict or null. What says nothing new (the host beside tensors that are
/// there, requires_grad=False, memory formats, order="K") is left out.
ops::ForeignCall foreign_call(const ForeignFunction& function, ir::Device here, PyObject* args, PyObject* kwargs, const ValueOf& value_of);

}  // namespace tenon::python
