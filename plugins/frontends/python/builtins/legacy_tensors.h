// Old ways to make and convert tensors (torch.FloatTensor([1, 2]), x.new(3), x.type(torch.LongTensor)) as the calls that stand for them today.
#pragma once

#include "python/evaluator/builtins.h"
#include "python/evaluator/evaluator.h"

namespace tenon::python {

/// Whether the type is torch.FloatTensor or its like: names for a dtype and a device.
bool is_tensor_type(PyObject* type);
/// An empty tensor with the dtype, device and layout of the one that a stand-in stands for; empty for arrays.
Ref empty_like_stand_in(PyObject* stand_in);
/// What `stand_in.new(...)` or `stand_in.type(...)` gives; nothing for other methods and arguments.
std::optional<Ref> call_legacy_method(Evaluator& evaluator, PyObject* stand_in, PyObject* name, const Arguments& arguments);

}  // namespace tenon::python
