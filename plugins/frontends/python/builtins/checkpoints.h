// torch.utils.checkpoint in a capture: parts of a program that torch evaluates again when gradients are computed.
#pragma once

#include <optional>

#include "python/objects/ref.h"

namespace tenon::python {

class Evaluator;
struct Arguments;

/// Whether it is torch.utils.checkpoint.checkpoint, past its decorator.
bool is_checkpoint(PyObject* function);
/// A call of that, by tenon._checkpoint.checkpoint.
std::optional<Ref> checkpoint(Evaluator& evaluator, Arguments arguments);
/// tenon._checkpoint.evaluate_region, evaluate_again and let_through_to_all_leaves.
std::optional<Ref> evaluate_region(Evaluator& evaluator, Arguments arguments);
std::optional<Ref> evaluate_again(Evaluator& evaluator, Arguments arguments);
std::optional<Ref> let_through_to_all_leaves(Evaluator& evaluator, Arguments arguments);

}  // namespace tenon::python
