// torch.Size where it holds sizes that vary: its own C code takes plain ints only, and would make constants of them. What it does is done as
// tuple does it.
#pragma once

#include "python/builtins/handlers.h"
#include "python/evaluator/builtins.h"
#include "python/evaluator/evaluator.h"

namespace tenon::python {

/// `sizes.numel()`; nothing for other methods, and where no size varies.
std::optional<Ref> call_method_of_sizes(Evaluator& evaluator, PyObject* sizes, PyObject* name);
/// math.prod(iterable, *, start=1): by the evaluator's multiplication as soon as a number varies.
Handled math_product(Evaluator& evaluator, Arguments& arguments);

}  // namespace tenon::python
