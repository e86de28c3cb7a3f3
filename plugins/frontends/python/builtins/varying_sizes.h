// torch.Size where it holds sizes that vary: its own C code takes plain ints only, and would make constants of them. What it does is done as
// tuple does it.
#pragma once

#include "python/builtins/handlers.h"
#include "python/evaluator/evaluator.h"

namespace tenon::python {

/// `sizes[slice]`; nothing where no size varies.
std::optional<Ref> slice_of_sizes(Evaluator& evaluator, PyObject* sizes, PyObject* slice);
/// The sum with a tuple, on either side, or a multiple; nothing for other operators and operands, and where no size varies.
std::optional<Ref> operator_of_sizes(Evaluator& evaluator, int operation, PyObject* left, PyObject* right);
/// torch.Size(sequence); nothing for other classes and arguments, and where no size varies.
std::optional<Ref> make_sizes(Evaluator& evaluator, PyTypeObject* type, const Arguments& arguments);
/// `sizes.numel()`; nothing for other methods, and where no size varies.
std::optional<Ref> call_method_of_sizes(Evaluator& evaluator, PyObject* sizes, PyObject* name);
/// math.prod(iterable, *, start=1): by the evaluator's multiplication as soon as a number varies.
Handled math_product(Evaluator& evaluator, Arguments& arguments);

}  // namespace tenon::python
