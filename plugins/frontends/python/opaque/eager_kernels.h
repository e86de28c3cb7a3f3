// Asks torch itself whether its CPU kernels take a call: where they do not, eager execution raises.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "python/foreign/foreign_names.h"
#include "python/objects/ref.h"
#include "python/stand_ins/stand_ins.h"

namespace tenon::python {

/// Whether the operands of a call leave a doubt: floats of one dtype of 32 bits and more are what every kernel is written for, and some
/// refuse tensors without elements.
bool operands_are_unusual(const StandIns& stand_ins, std::span<const StandIns::Index> operands);

/// Throws GraphBreak where the call raises or warns on zeros of the dtypes and sizes of its twins, so that eager execution does the same at
/// the program's line. An answer is kept by function, dtypes and classes of arguments, of tensors without elements it is asked anew; a call
/// on many elements is not asked about.
void require_eager_kernel(PyObject* callable, const ForeignFunction& function, PyObject* twin_args, PyObject* twin_kwargs);

/// What torch's CPU kernel gives for zeros, where that is like what it gives for ones: for a call that the meta device does not know. Nothing
/// otherwise, and for many elements.
Ref answer_for_all_elements(PyObject* callable, PyObject* twin_args, PyObject* twin_kwargs, const std::function<bool(PyObject*, PyObject*)>& alike);

/// The answer of torch's meta device to a call, with the strides that its CPU kernels give what is made in new memory, for zeros that lie as
/// the twins do: the meta device's kernels are others, and do not always say the same. `on_device`: the kernels of the operands' device, which must
/// draw nothing, and take any zeros: an assertion of theirs ends all work there. As it is where the kernels raise, or operands have more
/// than `most` elements.
Ref with_strides_of_kernels(Ref answer, const StandIns& stand_ins, PyObject* callable, PyObject* twin_args, PyObject* twin_kwargs, std::int64_t most, bool on_device);

/// Whether torch's CPU kernels make, in new memory, what lies alike for zeros that lie in each of some ways: a way is the strides of each of `twins`.
/// False where they raise.
bool lie_alike(PyObject* callable, PyObject* twin_args, PyObject* twin_kwargs, std::span<PyObject* const> twins, std::span<const std::vector<Extents>> ways);

/// What the call gives for zeros of the dtypes and sizes of its twins. Throws PythonError where it raises.
Ref answer_on_zeros(PyObject* callable, const ForeignFunction& function, PyObject* twin_args, PyObject* twin_kwargs);

}  // namespace tenon::python
